//! Starts and ends the data plane.

use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use edge_store::Store;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::watch,
};

use crate::{
    access_log::Logger,
    authority::{Authority, AuthorityError},
    listen::{self, ListenError},
    metrics::{Metrics, WorkerMetrics},
    options::Options,
    upstream::dial::Policy,
    worker::{PlainPort, Shared, Start},
};

/// Why the data plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The local certificate authority cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The system gives no thread or no random numbers.
    #[error("the system refuses what the edge needs")]
    System(#[source] io::Error),
}

/// The data plane.
#[derive(Debug)]
pub struct Proxy;

impl Proxy {
    /// Starts serving what the store publishes.
    ///
    /// # Errors
    /// When the listeners or the certificate authority cannot be had.
    pub fn start(store: &Store, options: Options) -> Result<Running, StartError> {
        start(store, options, PlainPort::Redirects)
    }

    /// The same, with the plain port serving requests instead of redirecting them: for benchmarks,
    /// which weigh the request path without TLS. Nothing of the product calls it; a test of the
    /// repository's habits holds that.
    ///
    /// # Errors
    /// As [`Proxy::start`].
    #[doc(hidden)]
    pub fn start_in_clear(store: &Store, options: Options) -> Result<Running, StartError> {
        start(store, options, PlainPort::Serves)
    }
}

fn start(store: &Store, options: Options, plain_port: PlainPort) -> Result<Running, StartError> {
    let workers = options.workers.map_or_else(
        || thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let authority = Arc::new(Authority::open(&options.data_dir)?);
    let (https, https_listeners) = listen::bind("HTTPS", options.https, workers)?;
    let (http, http_listeners) = listen::bind("HTTP", options.http, workers)?;
    let shared = Arc::new(Shared {
        timeouts: options.timeouts,
        limits: options.limits,
        defences: options.defences,
        fault: options.fault,
        revoke_grace: options.revoke_grace,
        drain_timeout: options.drain_timeout,
        public_port: options.public_port.unwrap_or(https.port()),
        placeholder: options.placeholder,
        authority: Arc::clone(&authority),
        plain_port,
        policy: Policy::new(&options.dial, [https, http]),
    });
    let (logger, writer) =
        Logger::start(options.access_log, options.limits.log_lines).map_err(StartError::System)?;
    let (stop, stopped) = watch::channel(false);
    let mut metrics = Vec::with_capacity(workers);
    let mut threads = Vec::with_capacity(workers + 1);
    for (number, (https, http)) in https_listeners.into_iter().zip(http_listeners).enumerate() {
        metrics.push(WorkerMetrics::new());
        let start = Start {
            shared: Arc::clone(&shared),
            store: store.clone(),
            metrics: Arc::clone(&metrics[number]),
            logger: logger.clone(),
            https,
            http,
            seed: seed().map_err(StartError::System)?,
            stop: stopped.clone(),
        };
        threads.push(spawn(number, start).map_err(StartError::System)?);
    }
    threads.extend(writer);
    Ok(Running {
        https,
        http,
        authority,
        metrics,
        stop,
        threads: Mutex::new(threads),
    })
}

/// Names that a worker looks up at once; each takes a thread while the resolver thinks.
const LOOKUPS_MAX: usize = 8;

fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn spawn(number: usize, start: Start) -> io::Result<JoinHandle<()>> {
    let runtime = || {
        Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(LOOKUPS_MAX)
            .build_local(LocalOptions::default())
    };
    thread::Builder::new()
        .name(format!("edge-{number}"))
        .spawn(move || {
            if let Err(error) = runtime().and_then(|runtime| runtime.block_on(start.run())) {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a worker of the edge cannot serve"
                );
            }
        })
}

/// A data plane that serves. Dropping it ends it without waiting.
#[derive(Debug)]
pub struct Running {
    /// Where HTTPS is served.
    pub https: SocketAddr,
    /// Where plain HTTP is answered.
    pub http: SocketAddr,
    authority: Arc<Authority>,
    metrics: Vec<Arc<WorkerMetrics>>,
    stop: watch::Sender<bool>,
    /// The workers, and behind them the access log's writer, which ends when none can log.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// The certificate that clients must trust for hosts without a certificate of their own.
    #[must_use]
    pub fn authority_certificate(&self) -> &Path {
        self.authority.certificate_path()
    }

    /// The numbers of this moment.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics::sum(self.metrics.iter().map(Arc::as_ref))
    }

    /// Takes no further connections and lets those that are open end, within the drain time-out.
    /// Returns at once; [`Running::shutdown`] waits for the end.
    pub fn drain(&self) {
        self.stop.send_replace(true);
    }

    /// Drains and waits until all has ended. Blocks the thread.
    pub fn shutdown(&self) {
        self.drain();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the edge ended by a panic");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.drain();
    }
}
