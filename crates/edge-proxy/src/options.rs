//! What an operator chooses, and the bounds on everything (models: unbounded nothing).

use std::{
    fmt,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use ipnet::IpNet;

/// How the data plane is started.
#[derive(Debug)]
pub struct Options {
    /// Where HTTPS is served; port 0 takes a free one.
    pub https: SocketAddr,
    /// Where plain HTTP is answered with redirects; port 0 takes a free one.
    pub http: SocketAddr,
    /// The port that redirects name; absent: the one that HTTPS is bound to.
    pub public_port: Option<u16>,
    /// Where the local authority keeps its key and certificate.
    pub data_dir: PathBuf,
    /// Threads that serve; absent: one a core.
    pub workers: Option<NonZeroUsize>,
    /// What may be dialled.
    pub dial: Dial,
    /// Within what time something that is no longer admitted is cut (R12). The last half second
    /// of it is for the cutting itself; less than that means at once.
    pub revoke_grace: Duration,
    /// How long open connections may go on after shutdown has begun.
    pub drain_timeout: Duration,
    /// Replaces the page of a closed route.
    pub placeholder: Option<String>,
    /// Which requests are logged, and where to.
    pub access_log: AccessLog,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// How much of anything there may be.
    pub limits: Limits,
    /// Test builds switch one defence off to see its corpus case fail.
    #[doc(hidden)]
    pub defences: Defences,
    /// Tests fail here, in the middle of a request, with its path in hand.
    #[doc(hidden)]
    pub fault: Option<fn(&str)>,
}

impl Options {
    /// Everything at its default, listening on free ports of the loopback address.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            https: free,
            http: free,
            public_port: None,
            data_dir,
            workers: None,
            dial: Dial::default(),
            revoke_grace: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(20),
            placeholder: None,
            access_log: AccessLog::off(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            defences: Defences::all(),
            fault: None,
        }
    }
}

/// The policy by which addresses from declarations are dialled (R20).
#[derive(Clone, Debug, Default)]
pub struct Dial {
    /// Networks that may be dialled although they are loopback (`--dial-allow`, and `up`).
    pub allow: Vec<IpNet>,
    /// Further listeners of this process (API, admin), which are never dialled. Those of the
    /// proxy itself are added at start.
    pub own: Vec<SocketAddr>,
}

/// How long anything may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A TLS handshake.
    pub handshake: Duration,
    /// A request head, from its first byte.
    pub head: Duration,
    /// A connection between two requests.
    pub idle: Duration,
    /// The client's next bytes: of a request body, or its taking of an answer.
    pub client: Duration,
    /// An HTTP/2 stream of whose answer the client takes nothing, as players do that are paused.
    /// Its connection ends with it, since the codec cannot be told to end the stream alone.
    pub stalled: Duration,
    /// A connection to a backend.
    pub connect: Duration,
    /// The head of a backend's answer, from the last byte sent to it.
    pub backend_head: Duration,
    /// A backend's next bytes of a body.
    pub backend_body: Duration,
    /// An upgraded connection on which neither side says anything.
    pub tunnel_idle: Duration,
    /// An idle connection to a backend.
    pub pool_idle: Duration,
    /// A request from its admission to the end of its answer or tunnel, however busy it is.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            client: Duration::from_secs(60),
            stalled: Duration::from_secs(600),
            connect: Duration::from_secs(5),
            backend_head: Duration::from_secs(120),
            backend_body: Duration::from_secs(120),
            tunnel_idle: Duration::from_secs(3600),
            pool_idle: Duration::from_secs(50),
            // The limits above are for silence, so that uploads, downloads, long polls and streams
            // may take the time that they need. This one is there so that nothing is for ever.
            total: Duration::from_secs(24 * 3600),
        }
    }
}

impl Timeouts {
    /// Between the announcement that a quiet HTTP/2 connection ends, and its end.
    pub(crate) fn goodbye(&self) -> Duration {
        self.client.min(Duration::from_secs(1))
    }
}

/// How much of anything there may be. Numbers for a worker, unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections of clients.
    pub connections: usize,
    /// Requests in flight and tunnels.
    pub requests: usize,
    /// Handshakes going on.
    pub handshakes: usize,
    /// Bytes of a request head.
    pub head_bytes: usize,
    /// Bytes of a request target.
    pub target_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request body.
    pub body_bytes: u64,
    /// HTTP/2 streams of a connection.
    pub streams: u32,
    /// Idle connections kept to one endpoint.
    pub idle_per_endpoint: usize,
    /// Idle connections kept in all.
    pub idle_connections: usize,
    /// Access log lines waiting to be written, in all; more are dropped and counted.
    pub log_lines: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            requests: 50_000,
            handshakes: 1024,
            head_bytes: 32 * 1024,
            target_bytes: 8 * 1024,
            headers: 100,
            // Bodies go through in pieces, so that their size costs the edge nothing: this is
            // for the backends, high enough for what people do upload in one piece.
            body_bytes: 1024 * 1024 * 1024,
            streams: 128,
            idle_per_endpoint: 128,
            idle_connections: 4096,
            log_lines: 8192,
        }
    }
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// None.
    Off,
    /// Those that were not passed on.
    Refused,
    /// Every one.
    All,
}

/// The access log: one JSON object a line.
pub struct AccessLog {
    /// Which requests.
    pub level: LogLevel,
    /// Where to.
    pub sink: Box<dyn Write + Send>,
}

impl AccessLog {
    /// No log.
    #[must_use]
    pub fn off() -> Self {
        Self {
            level: LogLevel::Off,
            sink: Box::new(std::io::sink()),
        }
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog")
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

/// The defences of R16 one by one. Always all on: the only way to switch one off is a hidden
/// field that no command line reaches, so that tests can show that each corpus case has teeth.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Defences {
    /// Ambiguous message framing.
    pub framing: bool,
    /// Bare CR and LF, NUL and other control characters.
    pub line_endings: bool,
    /// Duplicate or conflicting hosts.
    pub host: bool,
    /// Spellings of one path that matching and backend read differently.
    pub path: bool,
    /// Paths that backends may read as another route's.
    pub readings: bool,
    /// Spellings of an address.
    pub addresses: bool,
    /// Headers that only the edge may set.
    pub headers: bool,
    /// Trailers.
    pub trailers: bool,
    /// CONNECT, TRACE and extended CONNECT.
    pub methods: bool,
    /// Upgrades to anything but `websocket`, and tunnels without a verified 101.
    pub upgrades: bool,
    /// Handshakes that do not meet the demands of the host that a request names.
    pub handshake: bool,
}

impl Defences {
    /// All on.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            framing: true,
            line_endings: true,
            host: true,
            path: true,
            readings: true,
            addresses: true,
            headers: true,
            trailers: true,
            methods: true,
            upgrades: true,
            handshake: true,
        }
    }

    /// All on but one, by its name in the corpus.
    #[must_use]
    pub fn without(name: &str) -> Option<Self> {
        let mut defences = Self::all();
        let defence = match name {
            "framing" => &mut defences.framing,
            "line_endings" => &mut defences.line_endings,
            "host" => &mut defences.host,
            "path" => &mut defences.path,
            "readings" => &mut defences.readings,
            "addresses" => &mut defences.addresses,
            "headers" => &mut defences.headers,
            "trailers" => &mut defences.trailers,
            "methods" => &mut defences.methods,
            "upgrades" => &mut defences.upgrades,
            "handshake" => &mut defences.handshake,
            _ => return None,
        };
        *defence = false;
        Some(defences)
    }
}
