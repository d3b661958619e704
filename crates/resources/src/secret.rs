//! Secret: only its type and its bytes, which are never printed and wiped when dropped.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

/// A value of a Secret. Debug never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Wraps a value.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The value itself, for the one place that uses it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(…)")
    }
}

/// Serialises as in a Secret's `data`: standard base64.
impl Serialize for SecretBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.expose()))
    }
}

/// Reads standard base64. Line breaks inside are skipped, as Kubernetes' own decoder does.
pub(crate) fn from_base64(text: &str) -> Option<SecretBytes> {
    let compact = Zeroizing::new(
        text.bytes()
            .filter(|b| !matches!(b, b'\n' | b'\r'))
            .collect::<Vec<u8>>(),
    );
    STANDARD
        .decode(compact.as_slice())
        .ok()
        .map(SecretBytes::new)
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Secret {
    /// What kind of Secret (`kubernetes.io/tls`, `Opaque`); empty if not said.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub secret_type: String,
    /// The values by key; `stringData` has been taken over, and wins, as in a cluster.
    pub data: BTreeMap<String, SecretBytes>,
}

/// A Secret as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, rename = "type")]
    secret_type: String,
    #[serde(default)]
    data: BTreeMap<String, Zeroizing<String>>,
    #[serde(default)]
    string_data: BTreeMap<String, Zeroizing<String>>,
}

impl From<Written> for Secret {
    fn from(written: Written) -> Self {
        let Written {
            secret_type,
            data,
            string_data,
        } = written;
        // What is not base64 has been refused before by the shape's format.
        let decoded = data
            .into_iter()
            .filter_map(|(key, text)| Some((key, from_base64(&text)?)));
        let clear = string_data
            .into_iter()
            .map(|(key, text)| (key, SecretBytes::new(text.as_bytes().to_vec())));
        Self {
            secret_type,
            data: decoded.chain(clear).collect(),
        }
    }
}
