//! `portcullis edge`: an edge alone.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args;
use serde_json::json;
use telemetry::metrics::Metrics;

use crate::{
    assembly::{AdminSetting, Setting, add_proxy_figures, bind_admin, serve_admin, start_edge},
    flags::{edging::EdgeFlags, values::listener},
    output::{self, Running},
    paths, stop,
};

/// Run an edge alone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis edge --data-dir /var/lib/portcullis
  portcullis controller -f manifests/ --edge http://127.0.0.1:4041 \\
      --api-key-file /var/lib/portcullis/controller-key")]
pub(crate) struct Edge {
    /// Where state and keys are kept [default: ~/.local/share/portcullis]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where /metrics, /livez and /readyz are served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4042", value_parser = listener)]
    admin: SocketAddr,
    /// How what happens is printed
    #[arg(short = 'o', long, value_name = "FORM", default_value = "text")]
    output: Running,
    #[command(flatten)]
    edge: EdgeFlags,
}

impl Edge {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = stop::on_signal()?;
        let data_dir = paths::data_dir(self.data_dir.as_deref(), false)?;
        let admin_listener = bind_admin(self.admin).await?;
        let admin = admin_listener.local_addr()?;
        let setting = Setting {
            data_dir: &data_dir,
            demo: false,
            own_controller: false,
            admin,
        };
        let edge = start_edge(&self.edge, setting, shutdown.clone()).await?;
        let metrics = Arc::new(Metrics::new());
        add_proxy_figures(&metrics, &edge.proxy);
        let admin_task = serve_admin(
            admin_listener,
            AdminSetting {
                names: self.edge.api_names.clone(),
                metrics,
                // The stored state is served from the first moment; what cannot be saved cannot
                // be changed.
                ready: Arc::new({
                    let store = edge.store.saving();
                    move || *store.borrow()
                }),
                status: None,
                store: Some(edge.store.clone()),
            },
            shutdown.clone(),
        );
        match self.output {
            Running::Json => output::print(&format!(
                "{}\n",
                json!({"listening": {
                    "https": edge.proxy.https, "http": edge.proxy.http, "api": edge.api,
                    "admin": admin, "ca": edge.ca,
                }})
            ))?,
            Running::Text => output::print_lines(&[
                format!("HTTPS    https://{}", edge.proxy.https),
                format!("HTTP     http://{} (redirects)", edge.proxy.http),
                format!(
                    "API      {}://{}   key: {}",
                    if self.edge.api_tls_cert.is_some() {
                        "https"
                    } else {
                        "http"
                    },
                    edge.api,
                    paths::api_key(&data_dir).display()
                ),
                format!("admin    http://{admin}/metrics"),
                format!(
                    "trust    {} for hosts without a certificate of their own",
                    edge.ca.display()
                ),
            ])?,
        }
        let mut stopping = shutdown.clone();
        let _told = stopping.wait_for(|stop| *stop).await;
        edge.stop().await?;
        admin_task.await??;
        Ok(())
    }
}
