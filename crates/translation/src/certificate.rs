//! Certificates as text: serving certificates with their keys, and authorities for clients.
//!
//! No cryptography happens here: whether a key belongs to a certificate is told by the public
//! part that nearly every key file carries. Where it does not, the algorithms are compared, and
//! the edge, which loads the key, has the last word.

use base64::{Engine, engine::general_purpose::STANDARD};
use model::host::HostPattern;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, parse_x509_certificate,
    public_key::PublicKey,
};

/// Why a text is not what it should be; reads on after the name of the thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("holds no certificate in PEM")]
    NoCertificate,
    #[error("holds a certificate that cannot be read")]
    BrokenCertificate,
    #[error("holds no private key in PEM")]
    NoKey,
    #[error("holds the key of another certificate")]
    OtherKey,
    #[error("holds a certificate that is not an authority's")]
    NotAnAuthority,
}

/// The certificates of authorities, each as PEM in one spelling.
pub(crate) fn authorities(text: &str) -> Result<Vec<String>, Fault> {
    let chain = certificates(text)?;
    chain
        .iter()
        .map(|der| {
            let (_, parsed) = parse_x509_certificate(der).map_err(|_| Fault::BrokenCertificate)?;
            if !parsed.is_ca() {
                return Err(Fault::NotAnAuthority);
            }
            Ok(pem(der))
        })
        .collect()
}

/// Checks that the key belongs to the first certificate of the chain.
pub(crate) fn check_pair(chain: &str, key: &str) -> Result<(), Fault> {
    let chain = certificates(chain)?;
    for der in &chain {
        parse_x509_certificate(der).map_err(|_| Fault::BrokenCertificate)?;
    }
    let (_, leaf) = chain
        .first()
        .and_then(|der| parse_x509_certificate(der).ok())
        .ok_or(Fault::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| Fault::NoKey)?;
    if belongs(&key, &leaf).ok_or(Fault::NoKey)? {
        Ok(())
    } else {
        Err(Fault::OtherKey)
    }
}

/// Whether the first certificate of a chain names a host, as clients judge it (RFC 9525: only
/// subject alternative names, a wildcard is the whole first label).
pub(crate) fn names(chain: &str, host: &HostPattern) -> bool {
    let Ok(chain) = certificates(chain) else {
        return false;
    };
    let Some((_, leaf)) = chain
        .first()
        .and_then(|der| parse_x509_certificate(der).ok())
    else {
        return false;
    };
    let Ok(Some(names)) = leaf.subject_alternative_name() else {
        return false;
    };
    names.value.general_names.iter().any(|name| {
        let GeneralName::DNSName(name) = name else {
            return false;
        };
        HostPattern::parse(name).is_ok_and(|name| {
            name == *host || (!host.is_wildcard() && host.broader().as_ref() == Some(&name))
        })
    })
}

fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let chain = chain.map_err(|_| Fault::BrokenCertificate)?;
    if chain.is_empty() {
        Err(Fault::NoCertificate)
    } else {
        Ok(chain)
    }
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = tail;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

/// Whether the key belongs to the certificate; `None` if the key cannot be read.
fn belongs(key: &PrivateKeyDer<'_>, leaf: &X509Certificate<'_>) -> Option<bool> {
    let spki = leaf.public_key();
    match key {
        PrivateKeyDer::Pkcs1(key) => rsa_belongs(key.secret_pkcs1_der(), leaf),
        PrivateKeyDer::Sec1(key) => ec_belongs(key.secret_sec1_der(), leaf),
        PrivateKeyDer::Pkcs8(key) => {
            // RFC 5958: version, algorithm, private key, attributes `[0]`, public key `[1]`.
            let mut fields = Der::inside(key.secret_pkcs8_der(), Der::SEQUENCE)?;
            fields.expect(Der::INTEGER)?;
            let mut algorithm = Der(fields.expect(Der::SEQUENCE)?);
            let oid = algorithm.expect(Der::OID)?;
            let inner = fields.expect(Der::OCTETS)?;
            if oid != spki.algorithm.algorithm.as_bytes() {
                return Some(false);
            }
            match spki.parsed() {
                Ok(PublicKey::RSA(_)) => rsa_belongs(inner, leaf),
                Ok(PublicKey::EC(_)) => ec_belongs(inner, leaf),
                _ => {
                    let public = fields
                        .find(Der::CONTEXT_1_PRIMITIVE)
                        .and_then(|bits| bits.get(1..));
                    Some(
                        public.is_none_or(|public| public == spki.subject_public_key.data.as_ref()),
                    )
                }
            }
        }
        _ => None,
    }
}

/// RFC 8017 appendix A.1.2: version, modulus, public exponent, …
fn rsa_belongs(key: &[u8], leaf: &X509Certificate<'_>) -> Option<bool> {
    let mut fields = Der::inside(key, Der::SEQUENCE)?;
    fields.expect(Der::INTEGER)?;
    let modulus = fields.expect(Der::INTEGER)?;
    let exponent = fields.expect(Der::INTEGER)?;
    let Ok(PublicKey::RSA(public)) = leaf.public_key().parsed() else {
        return Some(false);
    };
    Some(number(modulus) == number(public.modulus) && number(exponent) == number(public.exponent))
}

/// RFC 5915: version, private key, parameters `[0]`, public key `[1]`.
fn ec_belongs(key: &[u8], leaf: &X509Certificate<'_>) -> Option<bool> {
    let mut fields = Der::inside(key, Der::SEQUENCE)?;
    fields.expect(Der::INTEGER)?;
    fields.expect(Der::OCTETS)?;
    let Ok(PublicKey::EC(public)) = leaf.public_key().parsed() else {
        return Some(false);
    };
    let carried = fields.find(Der::CONTEXT_1).and_then(Der::inside_bits);
    Some(carried.is_none_or(|carried| carried == public.data()))
}

/// A number without the zero that keeps it positive.
fn number(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    &bytes[zeros..]
}

/// The rest of a DER sequence: only what finding the fields of a key needs.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    const INTEGER: u8 = 0x02;
    const BITS: u8 = 0x03;
    const OCTETS: u8 = 0x04;
    const OID: u8 = 0x06;
    const SEQUENCE: u8 = 0x30;
    const CONTEXT_1: u8 = 0xa1;
    const CONTEXT_1_PRIMITIVE: u8 = 0x81;

    fn inside(bytes: &'a [u8], tag: u8) -> Option<Self> {
        Self(bytes).expect(tag).map(Self)
    }

    fn inside_bits(bytes: &'a [u8]) -> Option<&'a [u8]> {
        Self(bytes).expect(Self::BITS)?.get(1..)
    }

    /// The next field: its tag and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if digits.len() > 4 {
                return None;
            }
            (
                digits
                    .iter()
                    .fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
                rest,
            )
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The next field, if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// The next field with this tag.
    fn find(&mut self, tag: u8) -> Option<&'a [u8]> {
        loop {
            let (found, content) = self.next()?;
            if found == tag {
                return Some(content);
            }
        }
    }
}
