//! `portcullis up`: controller and edge in one process, from files to open routes.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use clap::Args;
use controller::{events::Event, reconcile::Options};
use edge_client::direct::DirectEdge;
use model::status::{RouteState, RouteStatus, Status};
use serde_json::json;

use crate::{
    assembly::{
        AdminSetting, Setting, add_proxy_figures, bind_admin, capabilities, serve_admin, start_edge,
    },
    control::{NAME, show, start, watch_files},
    demo,
    flags::{
        controlling::{CarryingFlags, DeclarationFlags},
        edging::EdgeFlags,
        values::listener,
    },
    keys,
    output::{self, Running, live::Live, table::WIDTH},
    paths, stop,
};

/// Serve manifests: controller and edge in one process.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis up --demo -f examples/quickstart
  portcullis up -f manifests/ --service shop/web:80=127.0.0.1:3000
  cat ingress.yaml | portcullis up -f - --on-invalid close")]
pub(crate) struct Up {
    /// For trying things out: Services without endpoints answer with a built-in echo page. Has a
    /// data directory of its own and listens on loopback only
    #[arg(long)]
    demo: bool,
    /// Where state and keys are kept [default: ~/.local/share/portcullis, or portcullis-demo]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where /metrics, /livez, /readyz and /status are served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4042", value_parser = listener)]
    admin: SocketAddr,
    /// How what happens is printed
    #[arg(short = 'o', long, value_name = "FORM", default_value = "text")]
    output: Running,
    #[command(flatten)]
    declarations: DeclarationFlags,
    #[command(flatten)]
    carrying: CarryingFlags,
    #[command(flatten)]
    edge: EdgeFlags,
}

impl Up {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = stop::on_signal()?;
        let data_dir = paths::data_dir(self.data_dir.as_deref(), self.demo)?;
        let source = watch_files(&self.declarations.files).await?;
        let stand_in = if self.demo {
            Some(demo::start(shutdown.clone()).await?)
        } else {
            None
        };
        let admin_listener = bind_admin(self.admin).await?;
        let admin = admin_listener.local_addr()?;
        let setting = Setting {
            data_dir: &data_dir,
            demo: self.demo,
            own_controller: true,
            admin,
        };
        let edge = start_edge(&self.edge, setting, shutdown.clone()).await?;
        let token = paths::read_key(&paths::controller_key(&data_dir))?;
        let options = Options {
            name: NAME.to_owned(),
            translation: self.declarations.options(stand_in),
            plan: self.carrying.options(),
            digest_key: keys::digest_key(&token),
            resync: self.carrying.resync,
        };
        let live = Live::new(self.output);
        let listening = Listening {
            https: edge.proxy.https,
            http: edge.proxy.http,
            api: edge.api,
            admin,
            ca: edge.ca.clone(),
        };
        match self.output {
            Running::Json => {
                output::print(&format!("{}\n", json!({"listening": listening.json()})))?
            }
            Running::Text => live.say(&listening.lines(self.demo))?,
        }
        let https = listening.https;
        let ca = listening.ca.clone();
        let mut pasted = std::collections::BTreeSet::new();
        let told = Box::new(move |events: &[Event], status: &Status| {
            show(&live, events, status);
            let lines: Vec<String> = status
                .routes
                .iter()
                // The broadest path of a host is the one to try first.
                .rev()
                .filter(|route| {
                    route.state == RouteState::Open && pasted.insert(route.host.clone())
                })
                .flat_map(|route| paste(route, https, &ca))
                .collect();
            if !lines.is_empty() {
                let _closed = live.say(&lines);
            }
        });
        let running = start(
            DirectEdge::new(edge.store.clone(), capabilities()),
            source,
            options,
            told,
        );
        add_proxy_figures(&running.metrics, &edge.proxy);
        let admin_task = serve_admin(
            admin_listener,
            AdminSetting {
                names: self.edge.api_names.clone(),
                metrics: running.metrics.clone(),
                ready: Arc::new({
                    let (controller, store) = (running.ready.clone(), edge.store.saving());
                    move || controller.load(Ordering::Acquire) && *store.borrow()
                }),
                status: Some(running.status.clone()),
                store: Some(edge.store.clone()),
            },
            shutdown.clone(),
        );
        let ended = (running.run)(shutdown).await;
        admin_task.abort();
        edge.stop().await?;
        Ok(ended?)
    }
}

/// Where the process listens.
struct Listening {
    https: SocketAddr,
    http: SocketAddr,
    api: SocketAddr,
    admin: SocketAddr,
    ca: PathBuf,
}

impl Listening {
    fn json(&self) -> serde_json::Value {
        let Self {
            https,
            http,
            api,
            admin,
            ca,
        } = self;
        json!({"https": https, "http": http, "api": api, "admin": admin, "ca": ca})
    }

    fn lines(&self, demo: bool) -> Vec<String> {
        let Self {
            https,
            http,
            api,
            admin,
            ca,
        } = self;
        let mut lines = Vec::new();
        if demo {
            lines.push("-".repeat(WIDTH.min(72)));
            lines.push(
                "DEMO: for trying things out. Services without endpoints answer with an echo"
                    .into(),
            );
            lines.push(
                "page. Everything listens on this machine only. Do not put it in production."
                    .into(),
            );
            lines.push("-".repeat(WIDTH.min(72)));
        }
        lines.push(format!("HTTPS    https://{https}"));
        lines.push(format!("HTTP     http://{http} (redirects)"));
        lines.push(format!("API      http://{api}"));
        lines.push(format!("admin    http://{admin}/metrics  /status"));
        lines.push(format!("trust    {}", ca.display()));
        lines.push(String::new());
        lines
    }
}

/// A line that reaches an open host from a terminal.
fn paste(route: &RouteStatus, https: SocketAddr, ca: &std::path::Path) -> [String; 2] {
    let host = route.host.replacen("*.", "any.", 1);
    let port = https.port();
    let url = shell_word(&format!("https://{host}:{port}{}", route.path));
    let address = if https.ip().is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        https.ip().to_string()
    };
    let resolve = if host.ends_with(".localhost") {
        String::new()
    } else {
        format!("--resolve {host}:{port}:{address} ")
    };
    [
        format!(
            "try      curl --cacert {} \\",
            shell_word(&ca.display().to_string())
        ),
        format!("             {resolve}{url}"),
    ]
}

/// A word as a POSIX shell reads it back, whatever a manifest or a directory's name puts into it.
fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-".contains(&byte);
    if text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_pasted_is_one_word() {
        assert_eq!(
            shell_word("https://a.example.com:8443/b"),
            "https://a.example.com:8443/b"
        );
        assert_eq!(shell_word("/a b"), "'/a b'");
        assert_eq!(shell_word("/$(x)'y"), r"'/$(x)'\''y'");
    }
}
