//! TLS certificates on the wire. The private key goes in and never comes out.

use model::secret::Secret;
use serde::{Deserialize, Serialize};

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::Resource,
    texts::Texts,
};

/// A new certificate as written, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateCreate {
    /// The chain in PEM, leaf first.
    pub chain_pem: String,
    /// The key in PEM.
    pub key_pem: Secret,
    /// The texts.
    pub texts: Texts,
}

impl CertificateCreate {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(mut members: Members) -> Result<Self, ApiError> {
        let texts = Texts::take(&mut members)?;
        let chain_pem = members.text("certificate_pem")?.unwrap_or_default();
        let key_pem = Secret::new(members.text("private_key_pem")?.unwrap_or_default());
        members.finish()?;
        if chain_pem.trim().is_empty() {
            return Err(ApiError::new(
                Code::CertificateInvalid,
                "certificate_pem must be given",
            ));
        }
        if key_pem.expose().trim().is_empty() {
            return Err(ApiError::new(
                Code::PrivateKeyMissing,
                "private_key_pem must be given",
            ));
        }
        Ok(Self {
            chain_pem,
            key_pem,
            texts,
        })
    }
}

/// Reads the body of a PATCH of the certificate with this id: only texts can change.
///
/// # Errors
/// When it is not one.
pub fn read_update(mut members: Members, id: &str) -> Result<Texts, ApiError> {
    members.same_id("id", id)?;
    let texts = Texts::take(&mut members)?;
    members.finish()?;
    Ok(texts)
}

/// The names that a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlternativeNames {
    /// Host names.
    #[serde(default)]
    pub dns_names: Vec<String>,
    /// Addresses.
    #[serde(default)]
    pub ips: Vec<String>,
}

/// A TLS certificate as answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCertificate {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was uploaded, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// The chain.
    pub certificate_pem: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_common_name: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_alternative_names: AlternativeNames,
    /// Always null: every certificate here was uploaded.
    pub issued_at: Option<String>,
    /// Of the leaf, RFC 3339.
    #[serde(default)]
    pub not_before: String,
    /// Of the leaf, RFC 3339.
    #[serde(default)]
    pub not_after: String,
    /// Of the leaf.
    #[serde(default)]
    pub key_usages: Vec<String>,
    /// Of the leaf.
    #[serde(default)]
    pub extended_key_usages: Vec<String>,
    /// `rsa`, `ecdsa` or `ed25519`.
    #[serde(default)]
    pub private_key_type: String,
    /// Of the leaf's issuer.
    #[serde(default)]
    pub issuer_common_name: String,
    /// Lower-case hexadecimal.
    #[serde(default)]
    pub serial_number: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_organization: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_organizational_unit: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_locality: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_province: String,
    /// Of the leaf.
    #[serde(default)]
    pub subject_country: String,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: CertificateExtras,
}

/// What this edge says of a certificate beyond the common API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateExtras {
    /// The controller that owns it.
    pub controller: Option<String>,
}

impl Resource for TlsCertificate {
    const PATH: &'static str = "/tls_certificates";
    const PLURAL: &'static str = "tls_certificates";
}
