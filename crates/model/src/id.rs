//! Identifiers of things at the edge: `<prefix>_<27 base62 characters>` (edge API). Clones share
//! the text, since states are copied often and hold many.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::time::Timestamp;

/// A text that is not an id of the kind asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an id of the form {prefix}_ and 27 letters and digits")]
pub struct NotAnId {
    /// What was given.
    pub text: String,
    /// The prefix that this kind of id has.
    pub prefix: &'static str,
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The 27 base62 characters of a 160-bit number.
#[must_use]
pub fn base62(mut bytes: [u8; 20]) -> String {
    let mut text = [b'0'; 27];
    for place in text.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut bytes {
            let value = (remainder << 8) | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *place = BASE62[remainder as usize];
    }
    text.iter().map(|b| char::from(*b)).collect()
}

/// 2014-05-13T16:53:20Z in seconds since 1970: the time part of ids counts from here (KSUID).
const EPOCH_SECS: u64 = 1_400_000_000;

/// The bits of an id that sorts by age: the second of its making, then what is random of `random`
/// (KSUID). For ids of what users of the API make; the caller brings clock and randomness.
#[must_use]
pub fn ksuid(made: Timestamp, mut random: [u8; 20]) -> [u8; 20] {
    let secs = (made.0 / 1000).saturating_sub(EPOCH_SECS);
    let secs = u32::try_from(secs).unwrap_or(u32::MAX);
    random[..4].copy_from_slice(&secs.to_be_bytes());
    random
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// What every id of this kind begins with, without the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// Reads an id.
            ///
            /// # Errors
            /// When the prefix or the form is another.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                let fine = text
                    .strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .is_some_and(|rest| rest.len() == 27 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
                if fine {
                    Ok(Self(text.into()))
                } else {
                    Err(NotAnId { text: text.to_owned(), prefix: $prefix })
                }
            }

            /// An id from 160 bits; the edge puts the creation second in the first 32 (KSUID).
            #[must_use]
            pub fn from_bits(bits: [u8; 20]) -> Self {
                Self(format!(concat!($prefix, "_{}"), base62(bits)).into())
            }

            /// The id of what these parts name, the same every time: a write that is repeated
            /// because its answer was lost makes no second object.
            #[must_use]
            pub fn derived(parts: &[&str]) -> Self {
                let mut hash = Sha256::new();
                hash.update($prefix);
                for part in parts {
                    hash.update((part.len() as u64).to_be_bytes());
                    hash.update(part);
                }
                let mut bits = [0; 20];
                bits.copy_from_slice(&hash.finalize()[..20]);
                Self::from_bits(bits)
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnId;
            fn try_from(text: String) -> Result<Self, NotAnId> {
                Self::parse(&text)
            }
        }
    )*};
}

ids! {
    /// An HTTPS edge.
    EdgeId = "edghts";
    /// A route of an HTTPS edge.
    RouteId = "edghtsrt";
    /// A tunnel-group backend.
    TunnelGroupId = "bkdtg";
    /// An HTTP response backend.
    HttpResponseId = "bkdhr";
    /// A static address backend.
    StaticId = "bkdsc";
    /// An IP policy.
    IpPolicyId = "ipp";
    /// A rule of an IP policy.
    IpRuleId = "ipr";
    /// A reserved domain.
    DomainId = "rd";
    /// A TLS certificate.
    CertificateId = "cert";
    /// A certificate authority.
    AuthorityId = "ca";
    /// An API key.
    KeyId = "ak";
}

/// A backend of any kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum BackendId {
    /// Matched by labels.
    TunnelGroup(TunnelGroupId),
    /// A fixed answer.
    HttpResponse(HttpResponseId),
    /// One address.
    Static(StaticId),
}

impl BackendId {
    /// Reads the id of any backend kind.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn parse(text: &str) -> Result<Self, NotAnId> {
        TunnelGroupId::parse(text)
            .map(Self::TunnelGroup)
            .or_else(|_| HttpResponseId::parse(text).map(Self::HttpResponse))
            .or_else(|_| StaticId::parse(text).map(Self::Static))
            .map_err(|_| NotAnId {
                text: text.to_owned(),
                prefix: "bkdtg, bkdhr or bkdsc",
            })
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::TunnelGroup(id) => id.as_str(),
            Self::HttpResponse(id) => id.as_str(),
            Self::Static(id) => id.as_str(),
        }
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<BackendId> for String {
    fn from(id: BackendId) -> Self {
        id.as_str().to_owned()
    }
}

impl TryFrom<String> for BackendId {
    type Error = NotAnId;
    fn try_from(text: String) -> Result<Self, NotAnId> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_well_formed_and_depend_on_where_parts_end() {
        let id = IpPolicyId::derived(&["a", "bc"]);
        assert_eq!(IpPolicyId::parse(id.as_str()), Ok(id.clone()));
        assert_ne!(id, IpPolicyId::derived(&["ab", "c"]));
        assert_eq!(base62([0xff; 20]), "aWgEPTl1tmebfsQzFP4bxwgy80V");
    }

    #[test]
    fn ids_of_what_users_make_sort_by_age() {
        let at = |millis, random| KeyId::from_bits(ksuid(Timestamp(millis), [random; 20]));
        assert!(at(1_400_000_001_000, 0xff) < at(1_400_000_002_000, 0));
        assert_eq!(
            ksuid(Timestamp(1_400_000_258_999), [7; 20])[..5],
            [0, 0, 1, 2, 7]
        );
        // Before the first second there is, and after the last.
        assert_eq!(ksuid(Timestamp(0), [7; 20])[..5], [0, 0, 0, 0, 7]);
        assert_eq!(
            ksuid(Timestamp(u64::MAX), [7; 20])[..5],
            [255, 255, 255, 255, 7]
        );
    }
}
