//! A proxy between a controller and an edge that fails as told, call by call, and remembers every
//! call. It knows HTTP/1.1 well enough to tell where a request and an answer end.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::client::{Answer, connect, read_answer};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It goes through.
    None,
    /// It goes through, later.
    Delay(Duration),
    /// It is read and goes no further; the connection is reset.
    CutAfterRequest,
    /// The edge does it; of its answer nothing comes back, the connection is reset.
    CutBeforeAnswer,
    /// The proxy answers by itself, with this status, these headers and this body.
    Answer {
        /// The status.
        status: u16,
        /// More headers.
        headers: Vec<(String, String)>,
        /// The body, JSON.
        body: String,
    },
}

impl Fault {
    /// An answer with a status and an error code.
    #[must_use]
    pub fn answer(status: u16, code: &str) -> Self {
        let body = serde_json::json!({
            "error_code": code, "status_code": status, "msg": "made by a test", "details": {},
        });
        Self::Answer {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// The same with `retry-after`.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        match self {
            Self::Answer {
                status,
                mut headers,
                body,
            } => {
                headers.push(("retry-after".to_owned(), seconds.to_string()));
                Self::Answer {
                    status,
                    headers,
                    body,
                }
            }
            other => other,
        }
    }
}

/// A call as the proxy saw it.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it had been read.
    pub at: Instant,
    /// Its method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// Its body.
    pub body: String,
    /// What became of it.
    pub fault: Fault,
}

impl Call {
    /// Whether it changes something.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Whether it is a command of this name.
    #[must_use]
    pub fn is_command(&self, name: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(&self.body)
            .is_ok_and(|body| body["command"] == name)
    }
}

type Script = Box<dyn FnMut(&Call) -> Fault + Send>;

struct Shared {
    upstream: Mutex<SocketAddr>,
    script: Mutex<Script>,
    calls: Mutex<Vec<Call>>,
    refusing: AtomicBool,
}

/// A running proxy. It ends with the process; its address stays.
#[derive(Clone)]
pub struct FaultProxy {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl FaultProxy {
    /// Starts one that lets everything through.
    #[must_use]
    pub fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            script: Mutex::new(Box::new(|_| Fault::None)),
            calls: Mutex::default(),
            refusing: AtomicBool::new(false),
        });
        let proxy = Self {
            address: listener.local_addr().expect("it is bound"),
            shared: shared.clone(),
        };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.refusing.load(Ordering::SeqCst) {
                    reset(&stream);
                    continue;
                }
                let shared = shared.clone();
                thread::spawn(move || {
                    let copy = stream.try_clone();
                    if serve(stream, &shared).is_err()
                        && let Ok(copy) = copy
                    {
                        reset(&copy);
                    }
                });
            }
        });
        proxy
    }

    /// The edge is elsewhere now.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        *self.shared.upstream.lock().expect("no holder panics") = upstream;
    }

    /// What becomes of the calls from now on.
    pub fn script(&self, script: impl FnMut(&Call) -> Fault + Send + 'static) {
        *self.shared.script.lock().expect("no holder panics") = Box::new(script);
    }

    /// Whether new connections are reset before anything is read.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refusing.store(refuse, Ordering::SeqCst);
    }

    /// Every call so far that `which` asks for.
    #[must_use]
    pub fn calls(&self, which: impl Fn(&Call) -> bool) -> Vec<Call> {
        let calls = self.shared.calls.lock().expect("no holder panics");
        calls.iter().filter(|call| which(call)).cloned().collect()
    }
}

/// Ends a connection as a machine does that goes away: with a reset.
fn reset(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    let _best_effort = socket.set_linger(Some(Duration::ZERO));
    let _already_gone = stream.shutdown(std::net::Shutdown::Both);
}

/// One connection of the controller with one connection to the edge. An error ends both.
fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let mut upstream: Option<TcpStream> = None;
    while let Some((bytes, mut call)) = read_call(&mut reader)? {
        call.fault = shared.script.lock().map_err(|_| gone())?(&call);
        let fault = call.fault.clone();
        shared.calls.lock().map_err(|_| gone())?.push(call.clone());
        match fault {
            Fault::CutAfterRequest => return Err(gone()),
            Fault::Answer {
                status,
                headers,
                body,
            } => {
                let body = body.into_bytes();
                let answer = Answer {
                    status,
                    headers,
                    body,
                };
                write_answer(&mut writer, &answer)?;
                continue;
            }
            Fault::Delay(span) => thread::park_timeout(span),
            Fault::None | Fault::CutBeforeAnswer => {}
        }
        let to = *shared.upstream.lock().map_err(|_| gone())?;
        let edge = match &mut upstream {
            Some(edge) => edge,
            none => none.insert(connect(to, None)?),
        };
        edge.write_all(&bytes)?;
        let answer = read_answer(edge, &call.method)?;
        if fault == Fault::CutBeforeAnswer {
            return Err(gone());
        }
        write_answer(&mut writer, &answer)?;
    }
    Ok(())
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

/// Reads one request whole; none when the connection ends before it.
fn read_call(reader: &mut BufReader<TcpStream>) -> io::Result<Option<(Vec<u8>, Call)>> {
    let mut bytes = Vec::new();
    let mut length = 0;
    loop {
        let begun = bytes.len();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            return if begun == 0 { Ok(None) } else { Err(gone()) };
        }
        let line = String::from_utf8_lossy(&bytes[begun..]).to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(io::Error::other)?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    bytes.extend_from_slice(&body);
    let call = Call {
        at: Instant::now(),
        method: method.to_owned(),
        path: path.to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
        fault: Fault::None,
    };
    Ok(Some((bytes, call)))
}

fn write_answer(writer: &mut TcpStream, answer: &Answer) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Said\r\n", answer.status);
    for (name, value) in &answer.headers {
        if !matches!(name.as_str(), "content-length" | "transfer-encoding") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", answer.body.len()));
    writer.write_all(head.as_bytes())?;
    writer.write_all(&answer.body)
}
