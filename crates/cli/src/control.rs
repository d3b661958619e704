//! `portcullis controller`: reads manifests and drives an edge through its API.

use std::{
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use clap::Args;
use controller::{
    events::Event,
    ports::{EdgeControl, ObjectSource},
    reconcile::{Controller, Options, SourceEnded, StatusSink, SystemClock},
};
use manifests::{files::Roots, yaml::Limits};
use model::{status::Status, time::Timestamp};
use serde_json::json;
use telemetry::metrics::Metrics;
use tokio::sync::watch;

use crate::{
    assembly::{AdminSetting, bind_admin, serve_admin},
    flags::{
        asking::controlled,
        controlling::{CarryingFlags, DeclarationFlags},
        values::listener,
    },
    keys,
    output::{self, Running, live::Live},
    paths, stop,
    usage::wrong_usage,
};

/// Run a controller alone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis controller -f manifests/ --edge http://127.0.0.1:4041 \\
      --api-key-file ~/.local/share/portcullis/controller-key")]
pub(crate) struct Control {
    /// URL of the edge's API; https, or http on loopback
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4041")]
    edge: String,
    /// File with an API key of the role controller; read again when it changes
    /// [default: controller-key in --data-dir]
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    api_key_file: Option<PathBuf>,
    /// The edge's data directory, to find the key in; nothing is written there
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Certificate authorities (PEM) to trust for --edge instead of the system's
    #[arg(long, value_name = "FILE")]
    edge_ca: Option<PathBuf>,
    /// Where /metrics, /livez, /readyz and /status are served; on loopback only
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4043", value_parser = listener)]
    admin: SocketAddr,
    /// How what happens is printed
    #[arg(short = 'o', long, value_name = "FORM", default_value = "text")]
    output: Running,
    #[command(flatten)]
    declarations: DeclarationFlags,
    #[command(flatten)]
    carrying: CarryingFlags,
}

impl Control {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = stop::on_signal()?;
        if !self.admin.ip().is_loopback() {
            wrong_usage!(
                "--admin {} leaves this machine, and a controller has no keys to ask for; keep it on loopback",
                self.admin
            );
        }
        let key_file = match self.api_key_file {
            Some(file) => file,
            None => paths::controller_key(&paths::data_dir(self.data_dir.as_deref(), false)?),
        };
        let token = paths::read_key(&key_file)?;
        let edge = controlled(&self.edge, key_file, self.edge_ca)?;
        let source = watch_files(&self.declarations.files).await?;
        let admin_listener = bind_admin(self.admin).await?;
        let live = Live::new(self.output);
        let admin = admin_listener.local_addr()?;
        match self.output {
            Running::Json => {
                output::print(&format!("{}\n", json!({"listening": {"admin": admin}})))?;
            }
            Running::Text => live.say(&[
                format!("edge     {}", self.edge),
                format!("admin    http://{admin}/metrics  /status"),
            ])?,
        }
        let options = Options {
            name: NAME.to_owned(),
            translation: self.declarations.options(None),
            plan: self.carrying.options(),
            digest_key: keys::digest_key(&token),
            resync: self.carrying.resync,
        };
        let running = start(
            edge,
            source,
            options,
            Box::new(move |events, status| show(&live, events, status)),
        );
        let admin_task = serve_admin(
            admin_listener,
            AdminSetting {
                names: Vec::new(),
                metrics: running.metrics.clone(),
                ready: Arc::new({
                    let ready = running.ready.clone();
                    move || ready.load(Ordering::Acquire)
                }),
                status: Some(running.status.clone()),
                store: None,
            },
            shutdown.clone(),
        );
        let ended = (running.run)(shutdown).await;
        admin_task.abort();
        Ok(ended?)
    }
}

/// Watches manifests; wrong paths are the user's mistake and end the program.
pub(crate) async fn watch_files(files: &[PathBuf]) -> anyhow::Result<ObjectSource> {
    let limits = Limits::default();
    let roots = Roots::open(files, limits.file_bytes)?;
    let settings = manifests::watch::Settings {
        limits,
        ..manifests::watch::Settings::default()
    };
    manifests::watch::watch(roots, settings)
        .await
        .context("the manifests cannot be watched")
}

/// Prints events and the table; when nobody reads any more, the work goes on without.
pub(crate) fn show(live: &Live, events: &[Event], status: &Status) {
    let at = format_now();
    if let Err(error) = live.show(events, status, &at) {
        tracing::debug!(%error, "standard output is closed");
    }
}

/// The time of day, in UTC, RFC 3339, for a line of output.
fn format_now() -> String {
    let now = controller::ports::Clock::now(&SystemClock);
    format_instant(now)
}

/// An instant in UTC, RFC 3339, whole seconds.
pub(crate) fn format_instant(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(
        |_| at.0.to_string(),
        |t| t.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

/// The name under which what a controller of files makes is owned at the edge.
pub(crate) const NAME: &str = "portcullis";

type Told = Box<dyn FnMut(&[Event], &Status) + Send + Sync>;

/// A status sink that keeps the newest for `/status` and tells the terminal.
struct Sink {
    newest: watch::Sender<Arc<Status>>,
    told: Told,
    /// Whether transitions go to the log too: not where a person sees them and the log on one
    /// screen.
    logs: bool,
}

impl StatusSink for Sink {
    fn report(&mut self, events: &[Event], status: &Arc<Status>) {
        self.newest.send_replace(status.clone());
        if self.logs {
            events.iter().for_each(log);
        }
        (self.told)(events, status);
    }
}

/// One error line per transition that somebody must act on, with object, reason and remedy.
fn log(event: &Event) {
    let Some(first) = event
        .reasons
        .iter()
        .find(|r| r.severity == model::diagnostic::Severity::Error)
    else {
        return;
    };
    let others = event.reasons.len() - 1;
    if event.host.is_empty() {
        tracing::error!(
            object = %first.object,
            reason = %first.message,
            remedy = first.remedy.as_deref().unwrap_or(""),
            "a declaration cannot be used"
        );
        return;
    }
    tracing::error!(
        route.host = %event.host,
        route.path = %event.path,
        state = event.to.map_or("", model::status::RouteState::name),
        object = %first.object,
        reason = %first.message,
        remedy = first.remedy.as_deref().unwrap_or(""),
        others,
        "a route is not as declared"
    );
}

type Run = Box<
    dyn FnOnce(
            watch::Receiver<bool>,
        ) -> Pin<Box<dyn Future<Output = Result<(), SourceEnded>> + Send>>
        + Send,
>;

/// A controller that is ready to run, and what can be seen of it.
pub(crate) struct Started {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ready: Arc<AtomicBool>,
    pub(crate) status: watch::Receiver<Arc<Status>>,
    pub(crate) run: Run,
}

/// Puts a controller together.
pub(crate) fn start<E: EdgeControl>(
    edge: E,
    source: ObjectSource,
    options: Options,
    told: Told,
) -> Started {
    let metrics = Arc::new(Metrics::new());
    let ready = Arc::new(AtomicBool::new(false));
    let (newest, status) = watch::channel(Arc::default());
    let controller = Controller {
        edge,
        clock: SystemClock,
        source,
        options,
        metrics: metrics.controller.clone(),
        sink: Sink {
            newest,
            told,
            logs: !output::live::one_screen(),
        },
        ready: ready.clone(),
        format: format_instant,
    };
    Started {
        metrics,
        ready,
        status,
        run: Box::new(move |shutdown| Box::pin(controller.run(shutdown))),
    }
}
