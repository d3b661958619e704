//! A real Kubernetes API server with its etcd, on loopback, with everything in a folder that goes
//! with it. `cargo xtask test --all` builds the two programs (`tests/cluster/`).

use std::{
    fs::{self, File},
    io::{self, Write as _},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    client::{Answer, Client, read_answer},
    wait::until,
};

/// From cold on a busy machine; usually it takes four seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The one user there is, with every right.
const TOKEN: &str = "admin-token";

/// The name in the API server's certificate.
const NAME: &str = "localhost";

/// A program that `cargo xtask test --all` builds.
///
/// # Panics
/// When it is not there: a test without its peer has failed.
#[must_use]
pub fn peer(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.peers/bin")
        .join(name);
    assert!(
        path.is_file(),
        "{name} is not built; `cargo xtask peers` builds it"
    );
    path
}

/// A running process that ends with its owner.
#[derive(Debug)]
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn start(folder: &Path, name: &str, arguments: &[(&str, String)]) -> Self {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).expect("a log file");
        let errors = output.try_clone().expect("a log file");
        let child = Command::new(peer(name))
            .args(
                arguments
                    .iter()
                    .map(|(flag, value)| format!("--{flag}={value}")),
            )
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .expect("it starts");
        Self { child, log }
    }

    /// That it still runs, or the end of its log.
    fn check(&mut self) {
        if let Some(status) = self.child.try_wait().expect("it is a child") {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(20).collect();
            let end: Vec<_> = lines.into_iter().rev().collect();
            panic!(
                "{} ended with {status}:\n{}",
                self.log.display(),
                end.join("\n")
            );
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The API server. Fields are dropped in order: it stops before its etcd, and both before their
/// folder goes.
#[derive(Debug)]
pub struct Cluster {
    apiserver: Running,
    etcd: Running,
    client: Client,
    _folder: TempDir,
}

impl Cluster {
    /// Starts both and waits until the server is ready.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the cluster");
        let key = certificate(folder.path());
        let [client, peer, secure] = free_ports();
        let url = |address: SocketAddr| format!("http://{address}");
        let etcd = Running::start(
            folder.path(),
            "etcd",
            &[
                ("data-dir", "etcd".to_owned()),
                ("unsafe-no-fsync", "true".to_owned()),
                ("listen-client-urls", url(client)),
                ("advertise-client-urls", url(client)),
                ("listen-peer-urls", url(peer)),
                ("initial-advertise-peer-urls", url(peer)),
                ("initial-cluster", format!("default={}", url(peer))),
            ],
        );
        let apiserver = Running::start(folder.path(), "kube-apiserver", &flags(client, secure));
        let mut cluster = Self {
            apiserver,
            etcd,
            client: Client::new(secure, key.as_bytes()),
            _folder: folder,
        };
        until("the API server is ready", PATIENCE, || {
            cluster.etcd.check();
            cluster.apiserver.check();
            let answer = cluster.try_send("GET", "/readyz", None, &[])?;
            if answer.status == 200 {
                Ok(())
            } else {
                Err(io::Error::other(answer.text()))
            }
        });
        cluster
    }

    /// One request of the administrator; `body` with its media type.
    #[must_use]
    pub fn send(&self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> Answer {
        self.try_send(method, path, body, &[])
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// One request with JSON, if any.
    #[must_use]
    pub fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(
            method,
            path,
            Some(("application/json", body.to_string().as_bytes())),
        )
    }

    /// One GET that asks for a media type.
    #[must_use]
    pub fn get_as(&self, path: &str, media_type: &str) -> Answer {
        self.try_send("GET", path, None, &[("accept", media_type)])
            .unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &[u8])>,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {NAME}\r\nauthorization: Bearer {TOKEN}\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut content: &[u8] = &[];
        if let Some((media_type, bytes)) = body {
            content = bytes;
            head.push_str(&format!(
                "content-type: {media_type}\r\ncontent-length: {}\r\n",
                bytes.len()
            ));
        }
        head.push_str("\r\n");
        let mut connection = self.client.open(NAME)?;
        connection.write_all(head.as_bytes())?;
        connection.write_all(content)?;
        connection.flush()?;
        read_answer(&mut connection, method)
    }
}

/// Tokens, and one key for everything that wants one: TLS and the tokens of service accounts,
/// which nobody uses. The certificate is the answer.
fn certificate(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let certificate = made.cert.pem();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("it is written");
    write("tls.crt", &certificate);
    write("tls.key", &made.signing_key.serialize_pem());
    write("accounts.pub", &made.signing_key.public_key_pem());
    write(
        "tokens.csv",
        &format!("{TOKEN},admin,admin,system:masters\n"),
    );
    certificate
}

fn flags(etcd: SocketAddr, secure: SocketAddr) -> Vec<(&'static str, String)> {
    let flags = [
        ("tls-cert-file", "tls.crt"),
        ("tls-private-key-file", "tls.key"),
        ("service-account-signing-key-file", "tls.key"),
        ("service-account-key-file", "accounts.pub"),
        ("service-account-issuer", "https://kubernetes.default.svc"),
        ("service-cluster-ip-range", "10.96.0.0/16"),
        ("authorization-mode", "RBAC"),
        ("token-auth-file", "tokens.csv"),
        // Nothing here mounts a token, and no other API server shares the endpoints.
        ("disable-admission-plugins", "ServiceAccount"),
        ("endpoint-reconciler-type", "none"),
    ];
    let mut all: Vec<_> = flags.map(|(flag, value)| (flag, value.to_owned())).into();
    all.push(("etcd-servers", format!("http://{etcd}")));
    all.push(("bind-address", secure.ip().to_string()));
    all.push(("advertise-address", secure.ip().to_string()));
    all.push(("secure-port", secure.port().to_string()));
    all
}

/// Ports that nobody listens on: held together, so that they differ, and then let go.
fn free_ports<const N: usize>() -> [SocketAddr; N] {
    let held = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    held.map(|listener| listener.local_addr().expect("a port"))
}
