//! Handshakes: which certificate is shown, and what is asked of the client (R13, R16).
//!
//! The configuration is chosen by the name that the client gives, from the table of that moment.
//! A name that no edge answers for is refused with the alert `unrecognised_name`, and so is a
//! client that gives none: R16 counts an absent name as a different one, and there is no edge for
//! it. Sessions are not resumed: a resumption would have to be judged by the demands of the day,
//! and a full handshake costs little. There is no early data.

use std::{
    cell::RefCell,
    collections::HashMap,
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use model::{host::HostPattern, module::TlsVersion, secret::Secret};
use routing::{
    host::normal_name,
    table::{EdgeEntry, Handshake},
};
use rustls::{
    ProtocolVersion, ServerConfig, SupportedProtocolVersion,
    crypto::aws_lc_rs::{default_provider, sign::any_supported_type},
    server::{Acceptor, NoServerSessionStorage, ResolvesServerCert},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};

use edge_state::state::{Certificate, EdgeState};
use edge_store::Store;

use crate::{
    authority::{Authority, AuthorityError, Leaf},
    socket::Socket,
};

/// Certificates kept ready. Each costs a signature to make; which are kept does not matter.
const KEPT_MAX: usize = 10_000;
/// A fatal alert `unrecognised_name` (RFC 8446 section 6.2) in a record of its own.
const UNRECOGNISED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Why a handshake came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("the handshake failed")]
    Failed(#[from] io::Error),
    #[error("no edge answers for the name")]
    UnknownName,
    #[error("the handshake takes too long")]
    Timeout,
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// Why a certificate from a declaration cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The chain is not PEM, or empty.
    #[error("the certificate chain is not a PEM file with certificates")]
    Chain,
    /// The key is not PEM.
    #[error("the private key is not a PEM file with a key")]
    Key,
    /// The key is of no kind that is known, or belongs to another certificate.
    #[error("the private key does not fit the certificate")]
    Pair(#[source] rustls::Error),
}

/// Reads a chain and its key, and sees that they belong together.
///
/// # Errors
/// When they cannot be used.
pub fn certified_key(chain_pem: &str, key_pem: &Secret) -> Result<CertifiedKey, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| CertificateError::Chain)?;
    if chain.is_empty() {
        return Err(CertificateError::Chain);
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem.expose().as_bytes())
        .map_err(|_| CertificateError::Key)?;
    let key = CertifiedKey::new(
        chain,
        any_supported_type(&key).map_err(CertificateError::Pair)?,
    );
    key.keys_match().map_err(CertificateError::Pair)?;
    Ok(key)
}

/// A worker's side of handshakes.
pub(crate) struct Tls {
    authority: Arc<Authority>,
    from_1_2: Arc<ServerConfig>,
    from_1_3: Arc<ServerConfig>,
    leaves: RefCell<HashMap<HostPattern, Leaf>>,
    /// By the address of the certificate in the state.
    stored: RefCell<HashMap<usize, Stored>>,
}

/// A certificate of the state, which keeps its address from being used again, and what it was
/// read as.
type Stored = (Arc<Certificate>, Option<Arc<CertifiedKey>>);

/// A connection that has been made.
pub(crate) struct Accepted {
    pub(crate) stream: TlsStream<Socket>,
    pub(crate) handshake: Handshake,
    pub(crate) is_http2: bool,
}

impl Tls {
    pub(crate) fn new(authority: Arc<Authority>) -> Result<Self, rustls::Error> {
        Ok(Self {
            authority,
            from_1_2: config(&[&TLS13, &TLS12])?,
            from_1_3: config(&[&TLS13])?,
            leaves: RefCell::default(),
            stored: RefCell::default(),
        })
    }

    /// Makes a handshake.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        store: &Store,
        timeout: Duration,
    ) -> Result<Accepted, TlsError> {
        tokio::time::timeout(timeout, self.handshake(stream, store))
            .await
            .unwrap_or(Err(TlsError::Timeout))
    }

    async fn handshake(&self, stream: TcpStream, store: &Store) -> Result<Accepted, TlsError> {
        let mut start = LazyConfigAcceptor::new(Acceptor::default(), Socket(stream)).await?;
        let hello = start.client_hello();
        let name = hello
            .server_name()
            .and_then(|name| normal_name(name).ok())
            .map(std::borrow::Cow::into_owned);
        let config = name
            .as_deref()
            .map(|name| self.config_for(name, store))
            .transpose()?
            .flatten();
        let Some(config) = config else {
            // The client is told why if it still listens; the connection ends in any case.
            let _ = start.io.write_all(&UNRECOGNISED_NAME).await;
            let _ = start.io.shutdown().await;
            return Err(TlsError::UnknownName);
        };
        let stream = start.into_stream(config).await?;
        let (_, session) = stream.get_ref();
        let version = match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        };
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        Ok(Accepted {
            stream,
            handshake: Handshake {
                server_name: name,
                version,
                authorities: None,
            },
            is_http2,
        })
    }

    /// The configuration for a name, if an edge answers for it.
    fn config_for(&self, name: &str, store: &Store) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        let published = store.load();
        let Some(entry) = published.table.host(name) else {
            return Ok(None);
        };
        let key = match self.stored_key(&entry.edge, &published.state) {
            Some(key) => key,
            None => self.leaf(&entry.pattern)?,
        };
        let template = match entry.edge.demands.tls_minimum {
            None | Some(TlsVersion::V1_2) => &self.from_1_2,
            Some(TlsVersion::V1_3) => &self.from_1_3,
        };
        let mut config = ServerConfig::clone(template);
        config.cert_resolver = Arc::new(SingleCertAndKey::from(key)) as Arc<dyn ResolvesServerCert>;
        Ok(Some(Arc::new(config)))
    }

    /// The certificate that the edge names. Where it is missing or cannot be used the local
    /// authority's takes its place: a certificate is no protection, its loss closes nothing (R2).
    fn stored_key(&self, edge: &EdgeEntry, state: &EdgeState) -> Option<Arc<CertifiedKey>> {
        let id = edge.certificate.as_ref()?;
        let certificate = state.certificates.get(id)?;
        let place = Arc::as_ptr(certificate).addr();
        if let Some((_, key)) = self.stored.borrow().get(&place) {
            return key.clone();
        }
        let key = certified_key(&certificate.chain_pem, &certificate.key_pem)
            .inspect_err(|error| {
                tracing::error!(certificate.id = %id, error = error as &dyn std::error::Error, "the certificate cannot be shown");
            })
            .ok()
            .map(Arc::new);
        let mut stored = self.stored.borrow_mut();
        if stored.len() >= KEPT_MAX {
            stored.clear();
        }
        stored.insert(place, (Arc::clone(certificate), key.clone()));
        key
    }

    /// The local authority's certificate for a declared host, made when it is first needed.
    fn leaf(&self, host: &HostPattern) -> Result<Arc<CertifiedKey>, AuthorityError> {
        let now = SystemTime::now();
        let mut leaves = self.leaves.borrow_mut();
        if let Some(leaf) = leaves.get(host)
            && now < leaf.renew_at
        {
            return Ok(Arc::clone(&leaf.key));
        }
        let leaf = self.authority.leaf(host, now)?;
        if leaves.len() >= KEPT_MAX {
            leaves.clear();
        }
        leaves.insert(host.clone(), leaf.clone());
        Ok(leaf.key)
    }

    /// Forgets stored certificates that have been replaced.
    pub(crate) fn sweep(&self) {
        self.stored
            .borrow_mut()
            .retain(|_, (certificate, _)| Arc::strong_count(certificate) > 1);
    }
}

fn config(
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NoCertificate));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// Stands in the templates until a handshake puts its certificate there.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}
