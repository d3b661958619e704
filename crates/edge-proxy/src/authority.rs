//! The local certificate authority: certificates for declared hosts that bring none of their own.
//!
//! Its key lies in the data directory, readable by its owner alone. Its certificate is constrained
//! to what it is for: it signs no further authorities, only certificates of servers, only for
//! names, never for addresses; whoever trusts it trusts no more than that.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use model::host::HostPattern;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};
use rustls::{crypto::aws_lc_rs::sign::any_ecdsa_type, sign::CertifiedKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const KEY_FILE: &str = "ca.key";
const CERTIFICATE_FILE: &str = "ca.crt";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Browsers accept 398 days at most; short enough that a leaked leaf is soon worthless.
const LEAF_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Clocks of clients may be behind.
const BACKDATE: Duration = Duration::from_secs(24 * 3600);
const AUTHORITY_LIFE: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error("{}: the local certificate authority's file cannot be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Others may read the key.
    #[error("{}: others may read the authority's key; delete it and {CERTIFICATE_FILE}, or `chmod 600` it if nobody did", .0.display())]
    Exposed(PathBuf),
    /// One of the two files is there, the other is not.
    #[error("{}: the authority's key and certificate belong together, but one of them is missing; delete the other", .0.display())]
    Half(PathBuf),
    /// It cannot sign what has to be valid for longer than itself.
    #[error("{}: the authority expires within {} days; delete {CERTIFICATE_FILE} and {KEY_FILE} to make a new one", .0.display(), LEAF_LIFE.as_secs() / DAY.as_secs())]
    Expired(PathBuf),
    /// The files are not what this edge writes.
    #[error("{}: not an authority of this edge", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Cryptography failed.
    #[error("a certificate cannot be made")]
    Make(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The local certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: PathBuf,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// A certificate of the authority's.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) key: Arc<CertifiedKey>,
    /// When another is made in its place.
    pub(crate) renew_at: SystemTime,
}

impl Authority {
    /// Opens the authority in a data directory, or makes it.
    ///
    /// # Errors
    /// When its files cannot be used as they are; nothing is repaired silently, since clients
    /// have been told to trust what is there.
    pub fn open(data_dir: &Path) -> Result<Self, AuthorityError> {
        let (key, certificate) = (data_dir.join(KEY_FILE), data_dir.join(CERTIFICATE_FILE));
        match (key.exists(), certificate.exists()) {
            (true, true) => {}
            (false, false) => make(data_dir, &key, &certificate)?,
            (true, false) => return Err(AuthorityError::Half(certificate)),
            (false, true) => return Err(AuthorityError::Half(key)),
        }
        load(&key, certificate)
    }

    /// The file that clients are told to trust.
    #[must_use]
    pub fn certificate_path(&self) -> &Path {
        &self.certificate
    }

    /// A certificate for a declared host or wildcard.
    pub(crate) fn leaf(&self, host: &HostPattern, now: SystemTime) -> Result<Leaf, AuthorityError> {
        let mut params = CertificateParams::new([host.as_str().to_owned()]).map_err(made)?;
        params.distinguished_name = name(host.as_str());
        params.not_before = (now - BACKDATE).into();
        params.not_after = (now + LEAF_LIFE).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(made)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(made)?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signer = any_ecdsa_type(&der).map_err(made)?;
        let key = Arc::new(CertifiedKey::new(vec![certificate.der().clone()], signer));
        Ok(Leaf {
            key,
            renew_at: now + LEAF_LIFE * 2 / 3,
        })
    }
}

fn made(error: impl std::error::Error + Send + Sync + 'static) -> AuthorityError {
    AuthorityError::Make(Box::new(error))
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    // RFC 5280, upper bound of a common name; clients read the alternative name.
    name.push(DnType::CommonName, common.get(..64).unwrap_or(common));
    name
}

fn make(data_dir: &Path, key_path: &Path, certificate_path: &Path) -> Result<(), AuthorityError> {
    let now = SystemTime::now();
    let mut params = CertificateParams::default();
    params.distinguished_name = name("Portcullis local authority");
    params.not_before = (now - BACKDATE).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: Vec::new(),
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::V4([0; 4], [0; 4])),
            GeneralSubtree::IpAddress(CidrSubnet::V6([0; 16], [0; 16])),
        ],
    });
    let key = KeyPair::generate().map_err(made)?;
    let certificate = params.self_signed(&key).map_err(made)?;
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| AuthorityError::File { path, source }
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir)
        .map_err(file(data_dir))?;
    write(certificate_path, &certificate.pem(), 0o644).map_err(file(certificate_path))?;
    write(key_path, &key.serialize_pem(), 0o600).map_err(file(key_path))
}

/// Writes a file whole or not at all.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}

fn load(key_path: &Path, certificate_path: PathBuf) -> Result<Authority, AuthorityError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| AuthorityError::File { path, source }
    };
    let content =
        |path: &Path, source: Box<dyn std::error::Error + Send + Sync>| AuthorityError::Content {
            path: path.to_owned(),
            source,
        };
    let mode = fs::metadata(key_path)
        .map_err(file(key_path))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(AuthorityError::Exposed(key_path.to_owned()));
    }
    let key_pem = fs::read_to_string(key_path).map_err(file(key_path))?;
    let pem = fs::read_to_string(&certificate_path).map_err(file(&certificate_path))?;
    let key = KeyPair::from_pem(&key_pem).map_err(|error| content(key_path, Box::new(error)))?;
    let (_, parsed) = x509_parser::pem::parse_x509_pem(pem.as_bytes())
        .map_err(|error| content(&certificate_path, Box::new(error)))?;
    let x509 = parsed
        .parse_x509()
        .map_err(|error| content(&certificate_path, Box::new(error)))?;
    if x509.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
        return Err(content(
            &certificate_path,
            "the key belongs to another certificate".into(),
        ));
    }
    let life = x509
        .validity()
        .time_to_expiration()
        .map_or(0, |left| left.whole_seconds());
    if u64::try_from(life).unwrap_or(0) < LEAF_LIFE.as_secs() {
        return Err(AuthorityError::Expired(certificate_path));
    }
    let issuer = Issuer::from_ca_cert_pem(&pem, key)
        .map_err(|error| content(&certificate_path, Box::new(error)))?;
    Ok(Authority {
        issuer,
        certificate: certificate_path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_private_and_the_authority_lasts() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = Authority::open(dir.path()).expect("made");
        let mode = fs::metadata(dir.path().join(KEY_FILE))
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = fs::read(made.certificate_path()).expect("read");
        let again = Authority::open(dir.path()).expect("opened");
        assert_eq!(before, fs::read(again.certificate_path()).expect("read"));
    }

    #[test]
    fn files_that_cannot_be_trusted_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        Authority::open(dir.path()).expect("made");
        let key = dir.path().join(KEY_FILE);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).expect("chmod");
        assert!(matches!(
            Authority::open(dir.path()),
            Err(AuthorityError::Exposed(_))
        ));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("chmod");
        fs::write(&key, KeyPair::generate().expect("a key").serialize_pem()).expect("written");
        assert!(matches!(
            Authority::open(dir.path()),
            Err(AuthorityError::Content { .. })
        ));
        fs::remove_file(&key).expect("removed");
        assert!(matches!(
            Authority::open(dir.path()),
            Err(AuthorityError::Half(_))
        ));
    }

    #[test]
    fn a_leaf_is_for_its_host_and_for_servers_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::open(dir.path()).expect("made");
        let host = HostPattern::parse("*.example.com").expect("a host");
        let leaf = authority.leaf(&host, SystemTime::now()).expect("a leaf");
        let (_, x509) =
            x509_parser::parse_x509_certificate(&leaf.key.cert[0]).expect("a certificate");
        let names = x509
            .subject_alternative_name()
            .expect("valid")
            .expect("there")
            .value;
        assert_eq!(
            names.general_names,
            [x509_parser::extensions::GeneralName::DNSName(
                "*.example.com"
            )]
        );
        assert!(!x509.is_ca());
        assert!(
            x509.extended_key_usage()
                .expect("valid")
                .expect("there")
                .value
                .server_auth
        );
        assert!(leaf.renew_at < SystemTime::now() + LEAF_LIFE);
    }
}
