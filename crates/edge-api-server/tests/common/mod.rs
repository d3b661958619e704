//! A real server over a real store, and a client that sends exactly what a test says.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use edge_api::api_key::{digest, new_key};
use edge_api_server::{Options, ServeError, serve};
use edge_state::{
    capabilities::{Atomicity, Capabilities},
    command::{Command, Texts},
    state::Role,
};
use edge_store::{Store, Writer};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime, sync::watch, task::JoinHandle};

/// A served edge.
pub(crate) struct Edge {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    runtime: Option<Runtime>,
    stop: watch::Sender<bool>,
    served: Option<JoinHandle<Result<(), ServeError>>>,
    data_dir: PathBuf,
    _dir: Arc<tempfile::TempDir>,
}

pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        atomicity: Atomicity::Replace,
        enforceable: routing_enforced(),
    }
}

fn routing_enforced() -> std::collections::BTreeSet<model::module::ModuleKind> {
    edge_store::Options::new(PathBuf::new()).enforceable
}

/// The key of each role in every test edge.
pub(crate) fn key(role: Role) -> String {
    let byte = match role {
        Role::Read => 1,
        Role::Write => 2,
        Role::Controller => 3,
    };
    new_key([byte; 20], [byte; 15]).1.expose().to_owned()
}

impl Edge {
    /// A new edge with a key of each role.
    pub(crate) fn start() -> Self {
        Self::start_with(|_options| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a directory"));
        let data_dir = dir.path().join("data");
        let edge = Self::open(dir, data_dir, change);
        for role in [Role::Read, Role::Write, Role::Controller] {
            let token_digest = digest(&key(role));
            let byte = [1, 2, 3][role as usize];
            let (id, _) = new_key([byte; 20], [byte; 15]);
            edge.command(Command::CreateKey {
                id,
                role,
                token_digest,
                texts: Texts::default(),
            });
        }
        edge
    }

    fn open(
        dir: Arc<tempfile::TempDir>,
        data_dir: PathBuf,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let store = Store::open(&edge_store::Options::new(data_dir.clone())).expect("a store");
        Self::serve(dir, data_dir, store, change)
    }

    /// Serves this store as it is.
    pub(crate) fn start_on(store: Store) -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a directory"));
        let data_dir = dir.path().to_owned();
        Self::serve(dir, data_dir, store, |_options| {})
    }

    fn serve(
        dir: Arc<tempfile::TempDir>,
        data_dir: PathBuf,
        store: Store,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        log();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a loopback listener");
        let address = listener.local_addr().expect("bound");
        let (stop, stopped) = watch::channel(false);
        let mut options = Options::new(capabilities());
        change(&mut options);
        let served = runtime.spawn(serve(listener, store.clone(), options, stopped));
        let (runtime, served) = (Some(runtime), Some(served));
        Self {
            address,
            store,
            runtime,
            stop,
            served,
            data_dir,
            _dir: dir,
        }
    }

    /// Ends the server and the store, and serves what is on the disk.
    pub(crate) fn restart(mut self) -> Self {
        let (dir, data_dir) = (Arc::clone(&self._dir), self.data_dir.clone());
        self.end();
        drop(self);
        Self::open(dir, data_dir, |_options| {})
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let (Some(runtime), Some(served)) = (self.runtime.take(), self.served.take()) {
            runtime.block_on(async {
                let ended = tokio::time::timeout(Duration::from_secs(20), served).await;
                ended
                    .expect("the server ends")
                    .expect("without a panic")
                    .expect("without error");
                self.store.stop().await;
            });
        }
    }

    /// Applies a command as the edge itself.
    pub(crate) fn command(&self, command: Command) {
        let runtime = self.runtime.as_ref().expect("running");
        runtime
            .block_on(self.store.apply(command, &Writer::EDGE))
            .expect("applied");
    }

    /// A call with the headers that every client sends.
    pub(crate) fn call(&self, role: Role, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_with(role, method, path, &[], body)
    }

    pub(crate) fn call_with(
        &self,
        role: Role,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let bearer = format!("Bearer {}", key(role));
        let mut all = vec![("ngrok-version", "2"), ("authorization", bearer.as_str())];
        all.extend(headers);
        let body = body.map(|body| body.to_string());
        if body.is_some() {
            all.push(("content-type", "application/json"));
        }
        self.raw(method, path, &all, body.as_deref().unwrap_or_default())
    }

    /// A request with these headers, Host and the body's length, and nothing else.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        if !body.is_empty() {
            headers.push(("content-length", length.as_str()));
        }
        self.raw_body(method, path, &headers, body)
    }

    /// The same, where the headers say how long the body is.
    pub(crate) fn raw_body(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.bytes(format!("{head}\r\n{body}").as_bytes())
    }

    fn bytes(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout");
        stream.write_all(request).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        Answer::read(&String::from_utf8(answer).expect("text"))
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.end();
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .expect("a status line");
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(body).expect(body)
        };
        let status = status.parse().expect("a number");
        Self {
            status,
            headers,
            text: body.to_owned(),
            body: value,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The code of an error, checked to be a whole one.
    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.body["status_code"], self.status, "{self:?}");
        assert!(
            self.body["msg"].as_str().is_some_and(|msg| !msg.is_empty()),
            "{self:?}"
        );
        let operation = self.header("ngrok-operation-id").expect("an operation id");
        assert_eq!(self.body["details"]["operation_id"], operation, "{self:?}");
        self.body["error_code"].as_str().unwrap_or("none")
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }

    #[track_caller]
    pub(crate) fn id(self) -> String {
        self.expect(201)["id"].as_str().expect("an id").to_owned()
    }
}

/// Everything logged, by every edge of this process; a call's lines are found by its id.
pub(crate) fn log() -> &'static Mutex<Vec<u8>> {
    static LOG: OnceLock<Mutex<Vec<u8>>> = OnceLock::new();
    struct Writer;
    impl std::io::Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            LOG.get()
                .expect("set")
                .lock()
                .expect("no panic")
                .extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    LOG.get_or_init(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(|| Writer)
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only one");
        Mutex::default()
    })
}

/// The lines of the audit log about a call.
pub(crate) fn audit_lines(answer: &Answer) -> Vec<String> {
    let operation = answer
        .header("ngrok-operation-id")
        .expect("an operation id");
    let log = String::from_utf8(log().lock().expect("no panic").clone()).expect("text");
    let about = log
        .lines()
        .filter(|line| line.contains(operation) && line.contains(" audit: "));
    about.map(str::to_owned).collect()
}
