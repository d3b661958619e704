//! Backends that say what reached them: each answer is JSON with the backend's name, the request
//! line and the headers as received, and the trailers where there are any. WebSockets are echoed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tungstenite::{WebSocket, protocol::Role};

/// A backend on a port of its own. It ends with the process.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    requests: Arc<AtomicU64>,
    last: Arc<Mutex<Vec<Value>>>,
}

/// At most this many requests are remembered.
const REMEMBERED: usize = 100_000;

impl Backend {
    /// Starts one.
    #[must_use]
    pub fn start(name: &str) -> Self {
        Self::start_with(name, true)
    }

    /// Starts one that answers 200 to every upgrade.
    #[must_use]
    pub fn never_switching(name: &str) -> Self {
        Self::start_with(name, false)
    }

    fn start_with(name: &str, switches: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let backend = Self {
            address: listener.local_addr().expect("it is bound"),
            requests: Arc::default(),
            last: Arc::default(),
        };
        let (name, seen) = (name.to_owned(), backend.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (name, seen) = (name.clone(), seen.clone());
                thread::spawn(move || serve(stream, &name, switches, &seen));
            }
        });
        backend
    }

    /// How many requests reached it.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Every request that reached it, oldest first.
    #[must_use]
    pub fn seen(&self) -> Vec<Value> {
        self.last
            .lock()
            .expect("no test panics while it looks")
            .clone()
    }
}

/// Serves one connection until it ends; errors end it, as a backend's would.
fn serve(stream: TcpStream, name: &str, switches: bool, seen: &Backend) -> Option<()> {
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .ok()?;
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let request_line = line.trim_end().to_owned();
        let headers = read_fields(&mut reader)?;
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| v.clone())
        };
        let (body, trailers) = read_body(&mut reader, &header)?;
        seen.requests.fetch_add(1, Ordering::SeqCst);
        let mut parts = request_line.split(' ');
        let mut answer = json!({
            "backend": name,
            "method": parts.next()?,
            "target": parts.next()?,
            "headers": headers,
            "body": String::from_utf8_lossy(&body),
        });
        if !trailers.is_empty() {
            answer["trailers"] = json!(trailers);
        }
        {
            let mut last = seen.last.lock().ok()?;
            if last.len() < REMEMBERED {
                last.push(answer.clone());
            }
        }
        if let Some(key) = header("sec-websocket-key").filter(|_| switches) {
            let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
            write!(
                writer,
                "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                 sec-websocket-accept: {accept}\r\nx-backend: {name}\r\n\r\n"
            )
            .ok()?;
            return echo(writer);
        }
        let text = answer.to_string();
        write!(
            writer,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-backend: {name}\r\ncontent-length: {}\r\n\r\n{}",
            text.len(),
            if request_line.starts_with("HEAD ") { "" } else { &text }
        )
        .ok()?;
        writer.flush().ok()?;
    }
}

/// Names and values, to the empty line.
type Fields = Vec<(String, String)>;

fn read_fields(reader: &mut BufReader<TcpStream>) -> Option<Fields> {
    let mut fields = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            return Some(fields);
        }
        let (key, value) = line.split_once(':')?;
        fields.push((key.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_body(
    reader: &mut BufReader<TcpStream>,
    header: &dyn Fn(&str) -> Option<String>,
) -> Option<(Vec<u8>, Fields)> {
    let mut body = Vec::new();
    if header("transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            if size == 0 {
                return Some((body, read_fields(reader)?));
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            body.extend_from_slice(&chunk[..size]);
        }
    }
    if let Some(length) = header("content-length") {
        body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
    }
    Some((body, Vec::new()))
}

fn echo(stream: TcpStream) -> Option<()> {
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    loop {
        let message = socket.read().ok()?;
        if message.is_text() || message.is_binary() {
            socket.send(message).ok()?;
        }
    }
}
