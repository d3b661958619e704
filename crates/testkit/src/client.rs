//! A small blocking HTTPS client that says exactly what it sends, may come from any loopback
//! address, and keeps its connection when asked.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use socket2::{Domain, Protocol, Socket, Type};
use tungstenite::{WebSocket, protocol::Role};

const PATIENCE: Duration = Duration::from_secs(10);

/// An answer as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Lower-case names and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }
}

/// Where and as whom to ask.
#[derive(Clone, Debug)]
pub struct Client {
    https: SocketAddr,
    config: Arc<ClientConfig>,
    roots: Arc<RootCertStore>,
    source: Option<IpAddr>,
}

/// One TLS connection to one host.
pub type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Opens a TCP connection, from `source` if given.
///
/// # Errors
/// When it cannot be opened.
pub fn connect(to: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.connect_timeout(&to.into(), PATIENCE)?;
    let stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Client {
    /// A client that trusts the authorities in `ca_pem`.
    #[must_use]
    pub fn new(https: SocketAddr, ca_pem: &[u8]) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem) {
            roots
                .add(certificate.expect("the authority is PEM"))
                .expect("the authority is a certificate");
        }
        let roots = Arc::new(roots);
        Self {
            https,
            config: config(&roots, rustls::ALL_VERSIONS),
            roots,
            source: None,
        }
    }

    /// The same, from another address of this machine.
    #[must_use]
    pub fn from_address(&self, source: IpAddr) -> Self {
        Self {
            source: Some(source),
            ..self.clone()
        }
    }

    /// The same, knowing no TLS above 1.2.
    #[must_use]
    pub fn with_tls_1_2(&self) -> Self {
        Self {
            config: config(&self.roots, &[&rustls::version::TLS12]),
            ..self.clone()
        }
    }

    /// The TLS configuration of a client that speaks this protocol and no other.
    #[must_use]
    pub fn config_for(&self, protocol: &[u8]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    /// Opens a connection for a host.
    ///
    /// # Errors
    /// When it is refused.
    pub fn open(&self, host: &str) -> io::Result<Connection> {
        let stream = connect(self.https, self.source)?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        Ok(StreamOwned::new(session, stream))
    }

    /// One GET on a connection of its own.
    ///
    /// # Errors
    /// When no whole answer comes.
    pub fn get(&self, host: &str, path: &str) -> io::Result<Answer> {
        self.send(host, "GET", path, &[])
    }

    /// One request without a body on a connection of its own.
    ///
    /// # Errors
    /// When no whole answer comes.
    pub fn send(
        &self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let mut connection = self.open(host)?;
        exchange(&mut connection, host, method, path, headers)
    }

    /// A WebSocket, its handshake answered with 101.
    ///
    /// # Errors
    /// When it is refused; the answer is in the text.
    pub fn websocket(&self, host: &str, path: &str) -> io::Result<WebSocket<Connection>> {
        let mut connection = self.open(host)?;
        let key = tungstenite::handshake::client::generate_key();
        write!(
            connection,
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
        )?;
        connection.flush()?;
        let (status, headers) = read_head(&mut connection)?;
        if status != 101 {
            return Err(io::Error::other(format!("{status}")));
        }
        let expected = tungstenite::handshake::derive_accept_key(key.as_bytes());
        if !headers
            .iter()
            .any(|(n, v)| n == "sec-websocket-accept" && *v == expected)
        {
            return Err(io::Error::other("the handshake was not answered right"));
        }
        Ok(WebSocket::from_raw_socket(connection, Role::Client, None))
    }
}

fn config(
    roots: &Arc<RootCertStore>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_root_certificates(Arc::clone(roots))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// One request and its answer on an open connection.
///
/// # Errors
/// When no whole answer comes.
pub fn exchange<S: Read + Write>(
    stream: &mut S,
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<Answer> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    read_answer(stream, method)
}

/// Reads one byte at a time up to the empty line, so that nothing behind the head is swallowed.
fn read_head<S: Read>(stream: &mut S) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 64 * 1024 {
            return Err(io::Error::other("the head of the answer has no end"));
        }
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| io::Error::other(format!("no status line: {text}")))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok((status, headers))
}

/// Reads a whole answer (RFC 9112 section 6.3).
///
/// # Errors
/// When it ends early.
pub fn read_answer<S: Read>(stream: &mut S, method: &str) -> io::Result<Answer> {
    let (status, headers) = read_head(stream)?;
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    if method == "HEAD" || status == 204 || status == 304 || status < 200 {
        return Ok(answer);
    }
    let chunked = answer
        .header("transfer-encoding")
        .is_some_and(|te| te.contains("chunked"));
    if chunked {
        let mut reader = BufReader::with_capacity(1, stream);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim().split(';').next().unwrap_or(""), 16)
                .map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(answer);
            }
            answer.body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = answer.header("content-length") {
        let length: usize = length.parse().map_err(io::Error::other)?;
        answer.body = vec![0; length];
        stream.read_exact(&mut answer.body)?;
    } else {
        stream.read_to_end(&mut answer.body)?;
    }
    Ok(answer)
}

/// One plain HTTP GET.
///
/// # Errors
/// When no whole answer comes.
pub fn plain_get(
    to: SocketAddr,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<Answer> {
    let mut stream = connect(to, None)?;
    let mut all = vec![("connection", "close")];
    all.extend_from_slice(headers);
    exchange(&mut stream, host, "GET", path, &all)
}
