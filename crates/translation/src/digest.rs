//! Keyed digests of what declarations say (R9): equal content, equal digest, and nothing to learn
//! from it without the key.
//!
//! Every field goes in as JSON behind its name, ended by a byte that JSON cannot hold, so that no
//! two different lists of fields read the same. Values are streamed: no copy of a secret is made.

use std::io::{self, Write};

use hmac::{Hmac, Mac};
use model::secret::Digest;
use serde::Serialize;
use sha2::Sha256;

/// The controller's key, shared by its replicas.
#[derive(Clone)]
pub struct DigestKey(Vec<u8>);

impl DigestKey {
    /// A key of any length.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DigestKey(…)")
    }
}

/// A digest in the making.
#[derive(Clone)]
pub(crate) struct Digester(Hmac<Sha256>);

/// Ends a field: no UTF-8 text holds this byte.
const END: [u8; 1] = [0xff];

impl Digester {
    /// Begins a digest; digests of different purposes never meet.
    pub(crate) fn new(key: &DigestKey, purpose: &str) -> Self {
        let mac = Hmac::new_from_slice(&key.0).expect("HMAC takes keys of any length (RFC 2104)");
        let mut digester = Self(mac);
        digester.0.update(purpose.as_bytes());
        digester.0.update(&END);
        digester
    }

    /// Adds a field.
    pub(crate) fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.0.update(name.as_bytes());
        self.0.update(&END);
        serde_json::to_writer(MacWriter(&mut self.0), value)
            .expect("plain values with text keys always serialise, and the writer never fails");
        self.0.update(&END);
    }

    /// The digest.
    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into_bytes().into())
    }
}

struct MacWriter<'a>(&'a mut Hmac<Sha256>);

impl Write for MacWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(key: &[u8], fields: &[(&str, &str)]) -> Digest {
        let mut digester = Digester::new(&DigestKey::new(key.to_vec()), "test");
        for (name, value) in fields {
            digester.add(name, value);
        }
        digester.finish()
    }

    #[test]
    fn where_fields_end_and_what_key_is_used_matter() {
        assert_eq!(digest(b"k", &[("a", "b")]), digest(b"k", &[("a", "b")]));
        assert_ne!(digest(b"k", &[("a", "b")]), digest(b"l", &[("a", "b")]));
        assert_ne!(digest(b"k", &[("a", "bc")]), digest(b"k", &[("ab", "c")]));
        assert_ne!(
            digest(b"k", &[("a", "b"), ("c", "d")]),
            digest(b"k", &[("a", "b\"c\"d")])
        );
    }
}
