//! One kept-alive connection to an edge's API, made anew when it has ended.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use edge_api::{
    error::ErrorBody,
    extension::{VERSION, VERSION_HEADER},
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use model::{secret::Secret, time::Span};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Mutex,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;

use crate::{address::EdgeAddress, classify::Answered};

/// How an edge is reached.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Where.
    pub address: EdgeAddress,
    /// Certificate authorities to trust instead of the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// How long connecting may take, and a TLS handshake.
    pub connect_timeout: Duration,
    /// How long a call may take from its first byte to the last of its answer.
    pub call_timeout: Duration,
    /// Bytes of an answer.
    pub answer_bytes_max: usize,
}

impl ConnectOptions {
    /// The defaults for an edge there.
    #[must_use]
    pub const fn new(address: EdgeAddress) -> Self {
        Self {
            address,
            ca_file: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(45),
            answer_bytes_max: 512 << 20,
        }
    }
}

/// Why it cannot be known whom to trust.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read.
    #[error("the certificate authorities in {} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is none in it.
    #[error("there is no certificate authority in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// A connection is not used again after it has been idle for this long: the edge may be closing
/// it at this moment, and then nobody would know whether a call was read.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;

type Sender = http1::SendRequest<Full<Bytes>>;

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

/// A call to be made.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{message}")]
    NotSent { message: String },
    #[error("{message}")]
    NoAnswer { message: String },
    #[error("its answer has more than {0} bytes")]
    TooLarge(usize),
}

impl CallError {
    /// Whether the edge may have read the call.
    pub(crate) const fn may_have_arrived(&self) -> bool {
        match self {
            Self::NotSent { .. } => false,
            Self::NoAnswer { .. } | Self::TooLarge(_) => true,
        }
    }
}

/// The way to one edge. Calls go one at a time over one connection: what a controller asks of an
/// edge has an order.
#[derive(Debug)]
pub(crate) struct Connection {
    options: ConnectOptions,
    tls: Option<Arc<ClientConfig>>,
    idle: Mutex<Option<Idle>>,
}

impl Connection {
    pub(crate) fn new(options: ConnectOptions) -> Result<Self, TrustError> {
        let tls = if options.address.tls {
            Some(Arc::new(client_config(&options)?))
        } else {
            None
        };
        Ok(Self {
            options,
            tls,
            idle: Mutex::new(None),
        })
    }

    pub(crate) const fn address(&self) -> &EdgeAddress {
        &self.options.address
    }

    /// Whether a connection is kept and nothing is asked over it.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle.try_lock().is_ok_and(|idle| idle.is_some())
    }

    /// Makes a call with this key. A success is its body; any other answer is given as it came.
    pub(crate) async fn call(
        &self,
        call: Call,
        key: &Secret,
    ) -> Result<Result<Bytes, Answered>, CallError> {
        let write = call.method != Method::GET;
        let request = self.request(call, key)?;
        let mut idle = self.idle.lock().await;
        let kept = idle.take().filter(|idle| idle.since.elapsed() < IDLE_MAX);
        let exchange = self.exchange(kept.map(|idle| idle.sender), request, write);
        let (sender, status, headers, body) = timeout(self.options.call_timeout, exchange)
            .await
            .map_err(|_late| {
            let message = format!("no answer within {} s", self.options.call_timeout.as_secs());
            CallError::NoAnswer { message }
        })??;
        *idle = Some(Idle {
            sender,
            since: Instant::now(),
        });
        if status.is_success() {
            return Ok(Ok(body));
        }
        let retry_after = headers.get(header::RETRY_AFTER).and_then(retry_after);
        let body = serde_json::from_slice::<ErrorBody>(&body).ok();
        Ok(Err(Answered {
            status,
            body,
            retry_after,
            write,
        }))
    }

    fn request(&self, call: Call, key: &Secret) -> Result<Request<Full<Bytes>>, CallError> {
        let Call {
            method,
            target,
            headers,
            body,
        } = call;
        let unfit = |what: &str| CallError::NotSent {
            message: format!("{what} does not fit into a request"),
        };
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_| unfit("the API key"))?;
        bearer.set_sensitive(true);
        let has_body = body.is_some();
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|_| unfit("the path"))?;
        let host = self.options.address.authority();
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.insert(
            header::HOST,
            HeaderValue::from_str(&host).map_err(|_| unfit("the host"))?,
        );
        headers.insert(header::AUTHORIZATION, bearer);
        headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
        let agent = concat!("portcullis/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        if has_body {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        Ok(request)
    }

    /// Sends the request on the kept connection, or on a new one where there is none, where it
    /// ended before anything was sent, or where a call that changes nothing got no answer.
    async fn exchange(
        &self,
        kept: Option<Sender>,
        mut request: Request<Full<Bytes>>,
        write: bool,
    ) -> Result<(Sender, StatusCode, HeaderMap, Bytes), CallError> {
        if let Some(mut sender) = kept {
            let again = (!write).then(|| request.clone());
            match send(&mut sender, request).await {
                Ok(response) => return self.receive(sender, response).await,
                Err(Unsent {
                    request: Some(unsent),
                    ..
                }) => request = *unsent,
                Err(Unsent {
                    request: None,
                    message,
                }) => {
                    request = again.ok_or(CallError::NoAnswer { message })?;
                }
            }
        }
        let mut sender = self.connect().await?;
        match send(&mut sender, request).await {
            Ok(response) => self.receive(sender, response).await,
            Err(Unsent {
                request: Some(_),
                message,
            }) => Err(CallError::NotSent { message }),
            Err(Unsent {
                request: None,
                message,
            }) => Err(CallError::NoAnswer { message }),
        }
    }

    async fn receive(
        &self,
        sender: Sender,
        response: hyper::Response<Incoming>,
    ) -> Result<(Sender, StatusCode, HeaderMap, Bytes), CallError> {
        let bytes_max = self.options.answer_bytes_max;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, bytes_max)
            .collect()
            .await
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    CallError::TooLarge(bytes_max)
                } else {
                    CallError::NoAnswer {
                        message: format!("its answer ended early: {error}"),
                    }
                }
            })?;
        Ok((sender, parts.status, parts.headers, body.to_bytes()))
    }

    async fn connect(&self) -> Result<Sender, CallError> {
        let address = &self.options.address;
        let failed = |why: &dyn std::fmt::Display| CallError::NotSent {
            message: format!("it cannot be reached: {why}"),
        };
        let wait = self.options.connect_timeout;
        let late = |_| {
            failed(&format_args!(
                "it did not answer within {} s",
                wait.as_secs()
            ))
        };
        let stream = timeout(wait, dial(address))
            .await
            .map_err(late)?
            .map_err(|error| failed(&error))?;
        let Some(tls) = &self.tls else {
            return handshake(stream).await;
        };
        let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
        let connector = TlsConnector::from(Arc::clone(tls));
        let stream = timeout(wait, connector.connect(name, stream))
            .await
            .map_err(late)?
            .map_err(|error| failed(&format_args!("TLS: {error}")))?;
        handshake(stream).await
    }
}

/// Connects to the first address that answers. Plain HTTP goes to loopback, whatever `localhost`
/// may be made to mean.
async fn dial(address: &EdgeAddress) -> io::Result<TcpStream> {
    let addresses = tokio::net::lookup_host((address.host.as_str(), address.port)).await?;
    let addresses: Vec<SocketAddr> = addresses
        .filter(|found| address.tls || found.ip().is_loopback())
        .collect();
    let mut last = io::Error::new(
        io::ErrorKind::NotFound,
        "the name has no address that may be used",
    );
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Sender, CallError> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| CallError::NotSent {
            message: error.to_string(),
        })?;
    // Ends with the sender, or with the stream; its error reaches whoever waits for an answer.
    tokio::spawn(async move {
        let _reported_to_the_caller = connection.await;
    });
    Ok(sender)
}

struct Unsent {
    /// The request, if nothing of it was sent.
    request: Option<Box<Request<Full<Bytes>>>>,
    message: String,
}

async fn send(
    sender: &mut Sender,
    request: Request<Full<Bytes>>,
) -> Result<hyper::Response<Incoming>, Unsent> {
    if let Err(error) = sender.ready().await {
        return Err(Unsent {
            request: Some(Box::new(request)),
            message: error.to_string(),
        });
    }
    sender.try_send_request(request).await.map_err(|mut error| {
        let request = error.take_message().map(Box::new);
        Unsent {
            request,
            message: format!("no answer came: {}", chain(error.error())),
        }
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {}", chain(source)),
    }
}

/// Seconds, or a date (RFC 9110 section 10.2.3).
fn retry_after(value: &HeaderValue) -> Option<Span> {
    let text = value.to_str().ok()?.trim();
    if let Ok(secs) = text.parse() {
        return Some(Span::from_secs(secs));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    let wait = at
        .as_millisecond()
        .saturating_sub(jiff::Timestamp::now().as_millisecond());
    Some(Span(u64::try_from(wait).unwrap_or(0)))
}

fn client_config(options: &ConnectOptions) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let Some(path) = &options.ca_file else {
        return Ok(builder.with_platform_verifier()?.with_no_client_auth());
    };
    let file = |source: Box<dyn std::error::Error + Send + Sync>| TrustError::File {
        path: path.clone(),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| file(error.into()))? {
        roots
            .add(certificate.map_err(|error| file(error.into()))?)
            .map_err(|error| file(error.into()))?;
    }
    if roots.is_empty() {
        return Err(TrustError::Empty { path: path.clone() });
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
