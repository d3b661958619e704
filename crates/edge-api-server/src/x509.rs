//! Uploaded certificates: whether they can serve at all, and what is said in them.

use edge_api::{
    certificate::{AlternativeNames, TlsCertificate},
    error::{ApiError, Code},
};
use model::secret::Secret;
use rustls::{crypto::aws_lc_rs, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{ExtendedKeyUsage, GeneralName, KeyUsage},
    oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519},
    prelude::FromDer as _,
    time::ASN1Time,
    x509::AttributeTypeAndValue,
};

/// Certificates of one chain.
const CHAIN_MAX: usize = 10;

/// Checks that the chain is one, in order by the names in it, and that the key is the leaf's. Who
/// trusts the chain checks its signatures; a wrong order is the mistake that people make.
pub(crate) fn check(chain_pem: &str, key_pem: &Secret) -> Result<(), ApiError> {
    let chain = chain(chain_pem)?;
    let parsed = chain
        .iter()
        .map(|der| parse(der))
        .collect::<Result<Vec<_>, _>>()?;
    for pair in parsed.windows(2) {
        if let [certificate, next] = pair
            && certificate.issuer().as_raw() != next.subject().as_raw()
        {
            let message = format!(
                "the chain is not in order: after {:?} must come its issuer {:?}",
                certificate.subject().to_string(),
                certificate.issuer().to_string(),
            );
            return Err(ApiError::new(Code::ChainOutOfOrder, message));
        }
    }
    let key = key(key_pem)?;
    let key = aws_lc_rs::sign::any_supported_type(&key).map_err(|_| {
        ApiError::new(
            Code::PrivateKeyInvalid,
            "private_key_pem is of a kind that this edge cannot use",
        )
    })?;
    CertifiedKey::new(chain, key).keys_match().map_err(|_| {
        ApiError::new(
            Code::PrivateKeyMismatch,
            "private_key_pem is not the key of the first certificate",
        )
    })
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, ApiError> {
    let invalid =
        |why: &str| ApiError::new(Code::CertificateInvalid, format!("certificate_pem: {why}"));
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
        .take(CHAIN_MAX + 1)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| invalid("this is not PEM"))?;
    match chain.len() {
        0 => Err(invalid("there is no certificate in it")),
        count if count > CHAIN_MAX => Err(invalid("there are too many certificates in it")),
        _ => Ok(chain),
    }
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, ApiError> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) | Err(_) => Err(ApiError::new(
            Code::CertificateInvalid,
            "certificate_pem: one of them is no certificate",
        )),
    }
}

fn key(pem: &Secret) -> Result<PrivateKeyDer<'static>, ApiError> {
    let text = pem.expose();
    // RFC 7468 section 11, and the older form of RFC 1421.
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        let message = "private_key_pem is encrypted; upload it in the clear";
        return Err(ApiError::new(Code::PrivateKeyEncrypted, message));
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        ApiError::new(
            Code::PrivateKeyInvalid,
            "private_key_pem: this is not a key in PEM",
        )
    })
}

/// What the leaf says. Nothing, where it cannot be read: what a controller stored was checked by it.
pub(crate) fn facts(chain_pem: &str) -> TlsCertificate {
    let Ok(chain) = chain(chain_pem) else {
        return TlsCertificate::default();
    };
    let Some(leaf) = chain.first().and_then(|der| parse(der).ok()) else {
        return TlsCertificate::default();
    };
    let subject = leaf.subject();
    TlsCertificate {
        subject_common_name: first(subject.iter_common_name()),
        subject_alternative_names: alternative_names(&leaf),
        issued_at: None,
        not_before: rfc3339(leaf.validity().not_before),
        not_after: rfc3339(leaf.validity().not_after),
        key_usages: leaf
            .key_usage()
            .ok()
            .flatten()
            .map(|e| key_usages(e.value))
            .unwrap_or_default(),
        extended_key_usages: leaf
            .extended_key_usage()
            .ok()
            .flatten()
            .map(|e| extended_key_usages(e.value))
            .unwrap_or_default(),
        private_key_type: key_type(&leaf).to_owned(),
        issuer_common_name: first(leaf.issuer().iter_common_name()),
        serial_number: leaf
            .raw_serial()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        subject_organization: first(subject.iter_organization()),
        subject_organizational_unit: first(subject.iter_organizational_unit()),
        subject_locality: first(subject.iter_locality()),
        subject_province: first(subject.iter_state_or_province()),
        subject_country: first(subject.iter_country()),
        ..TlsCertificate::default()
    }
}

fn first<'a>(mut values: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>) -> String {
    values
        .next()
        .and_then(|value| value.as_str().ok())
        .unwrap_or_default()
        .to_owned()
}

fn rfc3339(time: ASN1Time) -> String {
    let secs = u64::try_from(time.timestamp()).unwrap_or(0);
    crate::views::rfc3339(model::time::Timestamp(secs.saturating_mul(1000)))
}

fn key_type(certificate: &X509Certificate<'_>) -> &'static str {
    let kind = &certificate.public_key().algorithm.algorithm;
    if *kind == OID_PKCS1_RSAENCRYPTION {
        "rsa"
    } else if *kind == OID_KEY_TYPE_EC_PUBLIC_KEY {
        "ecdsa"
    } else if *kind == OID_SIG_ED25519 {
        "ed25519"
    } else {
        ""
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> AlternativeNames {
    let mut names = AlternativeNames::default();
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return names;
    };
    for name in &extension.value.general_names {
        match name {
            GeneralName::DNSName(name) => names.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => names.ips.extend(address(bytes)),
            _ => {}
        }
    }
    names
}

fn address(bytes: &[u8]) -> Option<String> {
    <[u8; 4]>::try_from(bytes)
        .map(|v4| std::net::Ipv4Addr::from(v4).to_string())
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(|v6| std::net::Ipv6Addr::from(v6).to_string()))
        .ok()
}

fn key_usages(usage: &KeyUsage) -> Vec<String> {
    named([
        (usage.digital_signature(), "digital_signature"),
        (usage.non_repudiation(), "content_commitment"),
        (usage.key_encipherment(), "key_encipherment"),
        (usage.data_encipherment(), "data_encipherment"),
        (usage.key_agreement(), "key_agreement"),
        (usage.key_cert_sign(), "cert_sign"),
        (usage.crl_sign(), "crl_sign"),
    ])
}

fn extended_key_usages(usage: &ExtendedKeyUsage<'_>) -> Vec<String> {
    named([
        (usage.server_auth, "server_auth"),
        (usage.client_auth, "client_auth"),
        (usage.code_signing, "code_signing"),
        (usage.email_protection, "email_protection"),
        (usage.time_stamping, "time_stamping"),
        (usage.ocsp_signing, "ocsp_signing"),
        (usage.any, "any"),
    ])
}

fn named<const N: usize>(usages: [(bool, &str); N]) -> Vec<String> {
    usages
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| name.to_owned())
        .collect()
}
