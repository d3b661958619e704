//! Putting an edge together: store, keys, data plane, API, admin listener.

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use edge_proxy::{AccessLog, Dial, LogLevel, Proxy};
use edge_state::{
    capabilities::{Atomicity, Capabilities},
    state::Role,
};
use edge_store::Store;
use model::{secret::Secret, status::Status, time::Span};
use telemetry::{
    admin::{Admin, Authorise, Ready},
    metrics::{Figure, Metrics, Sample, Value},
};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    flags::edging::{AccessLog as WhichRequests, EdgeFlags},
    keys,
    usage::wrong_usage,
};

/// What this edge can do.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        atomicity: Atomicity::Replace,
        enforceable: routing::chain::enforced(),
    }
}

/// A running edge.
pub(crate) struct Edge {
    pub(crate) store: Store,
    pub(crate) proxy: Arc<edge_proxy::Running>,
    pub(crate) api: SocketAddr,
    pub(crate) ca: PathBuf,
    api_task: tokio::task::JoinHandle<anyhow::Result<()>>,
}

/// What decides how an edge runs, beside its flags.
pub(crate) struct Setting<'a> {
    pub(crate) data_dir: &'a Path,
    pub(crate) demo: bool,
    /// Whether a controller runs in this process (`up`): no other may take over, and backends on
    /// loopback, the user's own machine, may be dialled.
    pub(crate) own_controller: bool,
    /// The admin listener of this process, never dialled.
    pub(crate) admin: SocketAddr,
}

pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0)
}

/// Starts everything that an edge is, in the order in which each may rely on the one before: the
/// state is read whole before anything listens.
pub(crate) async fn start_edge(
    flags: &EdgeFlags,
    setting: Setting<'_>,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<Edge> {
    let tls = api_tls(flags)?;
    if tls.is_none() && !flags.api.ip().is_loopback() {
        wrong_usage!(
            "--api {} leaves this machine, and API keys would cross the network in clear; \
             give it --api-tls-cert FILE and --api-tls-key FILE, or keep it on 127.0.0.1",
            flags.api
        );
    }
    let listeners = [flags.https, flags.http, flags.api, setting.admin];
    if setting.demo && !listeners.iter().all(|address| address.ip().is_loopback()) {
        wrong_usage!(
            "--demo is for trying things out and listens on loopback only: keep --https, --http, \
             --api and --admin on 127.0.0.1"
        );
    }
    let mut options = edge_store::Options::new(setting.data_dir.to_owned());
    options.demo = setting.demo;
    let store = Store::open(&options)?;
    keys::ensure(&store, setting.data_dir).await?;
    let api_listener = bind("--api", flags.api).await?;
    let api = api_listener.local_addr()?;
    let own = vec![setting.admin, api];
    let proxy = Proxy::start(
        &store,
        proxy_options(flags, setting.data_dir, setting.own_controller, own)?,
    )
    .context("--https and --http choose other addresses")?;
    let mut api_options = edge_api_server::Options::new(capabilities());
    api_options.tls = tls;
    api_options.names.clone_from(&flags.api_names);
    api_options.own_controller = setting.own_controller;
    let served = edge_api_server::serve(api_listener, store.clone(), api_options, shutdown);
    let api_task = tokio::spawn(async move { served.await.context("the API listener failed") });
    let ca = proxy.authority_certificate().to_owned();
    Ok(Edge {
        store,
        proxy: Arc::new(proxy),
        api,
        ca,
        api_task,
    })
}

impl Edge {
    /// Ends in order: no new work, then what is under way, then the state.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let Self {
            store,
            proxy,
            api: _,
            ca: _,
            api_task,
        } = self;
        proxy.drain();
        let proxy_done = tokio::task::spawn_blocking(move || proxy.shutdown());
        api_task.await.context("the API listener panicked")??;
        proxy_done.await.context("the data plane panicked")?;
        store.stop().await;
        Ok(())
    }
}

fn proxy_options(
    flags: &EdgeFlags,
    data_dir: &Path,
    loopback: bool,
    own: Vec<SocketAddr>,
) -> anyhow::Result<edge_proxy::Options> {
    let mut options = edge_proxy::Options::new(data_dir.to_owned());
    options.https = flags.https;
    options.http = flags.http;
    options.public_port = flags.public_port;
    options.revoke_grace = duration(flags.revoke_grace);
    options.drain_timeout = duration(flags.drain);
    options.limits.body_bytes = flags.max_request_body;
    options.timeouts.total = duration(flags.max_request_time);
    options.workers = match flags.workers {
        None => None,
        Some(number) => match NonZeroUsize::new(number) {
            Some(number) => Some(number),
            None => wrong_usage!("--workers must be at least 1"),
        },
    };
    let mut allow = flags.dial_allow.clone();
    if loopback {
        allow.push("127.0.0.0/8".parse()?);
        allow.push("::1/128".parse()?);
    }
    options.dial = Dial { allow, own };
    if let Some(file) = &flags.placeholder {
        let page = std::fs::read_to_string(file)
            .with_context(|| format!("--placeholder {} cannot be read", file.display()))?;
        options.placeholder = Some(page);
    }
    let level = match flags.access_log {
        WhichRequests::Off => LogLevel::Off,
        WhichRequests::Refused => LogLevel::Refused,
        WhichRequests::All => LogLevel::All,
    };
    options.access_log = AccessLog {
        level,
        sink: Box::new(std::io::stderr()),
    };
    Ok(options)
}

fn api_tls(flags: &EdgeFlags) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
    let (Some(cert), Some(key)) = (&flags.api_tls_cert, &flags.api_tls_key) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let certified = edge_proxy::certified_key(&read(cert)?, &Secret::new(read(key)?))
        .with_context(|| {
            format!(
                "--api-tls-cert {} with --api-tls-key {}",
                cert.display(),
                key.display()
            )
        })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
    Ok(Some(Arc::new(config)))
}

/// The data plane's counters as samples.
pub(crate) fn add_proxy_figures(metrics: &Metrics, proxy: &Arc<edge_proxy::Running>) {
    // Weak, so that a scrape does not keep a data plane from ending.
    let proxy = Arc::downgrade(proxy);
    metrics.add_source(Arc::new(move || {
        proxy
            .upgrade()
            .map(|proxy| samples(&proxy.metrics()))
            .unwrap_or_default()
    }));
}

fn samples(metrics: &edge_proxy::Metrics) -> Vec<Sample> {
    let edge_proxy::Metrics {
        passed,
        refused,
        latency,
        latency_sum_us,
        connections_accepted,
        connections_rejected,
        connections_open,
        handshakes_failed,
        requests_in_flight,
        cut,
        abandoned,
        redirects,
        panics,
        bytes_received,
        bytes_sent,
        upstream_connects,
        upstream_failures,
        upstream_retries,
        upstream_idle,
        log_lines_dropped,
    } = metrics;
    let number = |figure, value: &u64| Sample {
        figure,
        labels: Vec::new(),
        value: Value::Number(*value),
    };
    let request = |verdict: &str, reason: &str, value: u64| Sample {
        figure: Figure::Requests,
        labels: vec![
            ("verdict", verdict.to_owned()),
            ("reason", reason.to_owned()),
        ],
        value: Value::Number(value),
    };
    let bounds = edge_proxy::LATENCY_BUCKETS_US
        .iter()
        .map(|us| Duration::from_micros(*us).as_secs_f64());
    let buckets = bounds
        .chain([f64::MAX])
        .zip(latency.iter().copied())
        .collect();
    let sum = Duration::from_micros(*latency_sum_us).as_secs_f64();
    let mut samples = vec![
        request("passed", "", *passed),
        Sample {
            figure: Figure::RequestDuration,
            labels: Vec::new(),
            value: Value::Histogram { sum, buckets },
        },
        number(Figure::RequestsInFlight, requests_in_flight),
        number(Figure::Connections, connections_open),
        number(Figure::ConnectionsAccepted, connections_accepted),
        number(Figure::ConnectionsRejected, connections_rejected),
        number(Figure::HandshakeFailures, handshakes_failed),
        number(Figure::Cut, cut),
        number(Figure::Abandoned, abandoned),
        number(Figure::Redirects, redirects),
        number(Figure::Panics, panics),
        number(Figure::BytesReceived, bytes_received),
        number(Figure::BytesSent, bytes_sent),
        number(Figure::UpstreamConnects, upstream_connects),
        number(Figure::UpstreamFailures, upstream_failures),
        number(Figure::UpstreamRetries, upstream_retries),
        number(Figure::UpstreamIdle, upstream_idle),
        number(Figure::AccessLogDropped, log_lines_dropped),
    ];
    samples.extend(
        refused
            .iter()
            .map(|(reason, count)| request("refused", reason.label(), *count)),
    );
    samples
}

/// The admin listener of a process.
pub(crate) struct AdminSetting {
    pub(crate) names: Vec<String>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ready: Ready,
    pub(crate) status: Option<watch::Receiver<Arc<Status>>>,
    pub(crate) store: Option<Store>,
}

/// Binds the admin listener first, so that its address is known to the dial policy.
pub(crate) async fn bind_admin(address: SocketAddr) -> anyhow::Result<TcpListener> {
    bind("--admin", address).await
}

/// Binds the listener of a flag.
async fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                format!("another process does; stop it, or choose another address with {flag}")
            }
            _ => error.to_string(),
        };
        anyhow::anyhow!("{flag} cannot listen on {address}: {hint}")
    };
    TcpListener::bind(address).await.map_err(failed)
}

/// Serves the admin listener until shutdown.
pub(crate) fn serve_admin(
    listener: TcpListener,
    setting: AdminSetting,
    shutdown: watch::Receiver<bool>,
) -> tokio::task::JoinHandle<std::io::Result<()>> {
    let AdminSetting {
        names,
        metrics,
        ready,
        status,
        store,
    } = setting;
    let authorise = store.map(|store| -> Authorise {
        Arc::new(move |headers| {
            headers
                .get(http::header::AUTHORIZATION)
                .and_then(|value| value.to_str().ok())
                .and_then(|value| value.strip_prefix("Bearer "))
                .map(|token| keys::token_digest(&Secret::new(token.to_owned())))
                .and_then(|digest| store.current().find_key(&digest))
                .is_some_and(|(_, role)| match role {
                    Role::Read | Role::Write | Role::Controller => true,
                })
        })
    });
    tokio::spawn(telemetry::admin::serve(
        listener,
        Admin {
            metrics,
            ready,
            status,
            authorise,
            names,
        },
        shutdown,
    ))
}
