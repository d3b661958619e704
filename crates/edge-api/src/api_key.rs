//! API keys on the wire, and the form of a key.
//!
//! A key is the 27 characters of its id, an underscore, and 21 characters that begin with a digit.
//! The edge keeps only the digest of the whole, so the id in front lets it find the one digest to
//! compare with, and lets a person see which key lies in a file without being told the key.

use model::{
    id::{KeyId, base62},
    secret::{Digest, Secret},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::Resource,
    module::not_available,
    texts::Texts,
};

const ID_CHARS: usize = 27;
const SECRET_CHARS: usize = 21;

/// The roles, as the extension member `role` names them.
pub const ROLES: [&str; 3] = ["read", "write", "controller"];

/// A new key from random bits: its id, and the key itself, which is shown once.
///
/// The first 32 of the id's bits are the second of its creation, as in every id; the rest, and all
/// 120 bits of the secret, must come from the system's source of randomness.
#[must_use]
pub fn new_key(id_bits: [u8; 20], secret_bits: [u8; 15]) -> (KeyId, Secret) {
    let mut bits = [0; 20];
    bits[5..].copy_from_slice(&secret_bits);
    // 120 bits fill 21 base62 characters, and the first of them is 0 or 1: a digit, as it should.
    let secret = base62(bits).split_off(ID_CHARS - SECRET_CHARS);
    (
        KeyId::from_bits(id_bits),
        Secret::new(format!("{}_{secret}", base62(id_bits))),
    )
}

/// Whether this could be a key at all; which key it is, its digest says.
///
/// # Errors
/// When it is the id of one, or has another form. The message never repeats it.
pub fn check_form(text: &str) -> Result<(), ApiError> {
    if KeyId::parse(text).is_ok() {
        return Err(ApiError::new(
            Code::KeyIdSent,
            "this is the id of an API key, not the key",
        ));
    }
    let base62 = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    let fine = text.split_once('_').is_some_and(|(id, secret)| {
        id.len() == ID_CHARS
            && secret.len() == SECRET_CHARS
            && base62(id)
            && base62(secret)
            && secret.starts_with(|c: char| c.is_ascii_digit())
    });
    if fine {
        Ok(())
    } else {
        Err(ApiError::new(Code::KeyMalformed, "this is not an API key"))
    }
}

/// The digest under which the edge knows a key.
#[must_use]
pub fn digest(key: &str) -> Digest {
    Digest(Sha256::digest(key).into())
}

/// A new key as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCreate {
    /// One of [`ROLES`]; a plain key has the role write.
    pub role: String,
    /// The texts.
    pub texts: Texts,
}

impl KeyCreate {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(mut members: Members) -> Result<Self, ApiError> {
        let texts = Texts::take(&mut members)?;
        let owner = members.text("owner_id")?.is_some_and(|id| !id.is_empty());
        let role = members.text("role")?.filter(|role| !role.is_empty());
        members.finish()?;
        if owner {
            return Err(not_available("owner_id", "it has no users"));
        }
        let role = role.unwrap_or_else(|| "write".to_owned());
        if !ROLES.contains(&role.as_str()) {
            return Err(ApiError::invalid("role", "read, write or controller"));
        }
        Ok(Self { role, texts })
    }
}

/// Reads the body of a PATCH of the key with this id: only texts can change.
///
/// # Errors
/// When it is not one.
pub fn read_update(mut members: Members, id: &str) -> Result<Texts, ApiError> {
    members.same_id("id", id)?;
    let texts = Texts::take(&mut members)?;
    members.finish()?;
    Ok(texts)
}

/// An API key as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// Always empty: this edge has no users.
    #[serde(default)]
    pub owner_id: String,
    /// The key itself: in the answer to its creation, and null ever after.
    pub token: Option<String>,
    /// What it may do.
    #[serde(default)]
    pub role: String,
}

impl Resource for ApiKey {
    const PATH: &'static str = "/api_keys";
    const PLURAL: &'static str = "keys";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_has_the_form_of_one_and_begins_with_its_id() {
        for bits in [0x00, 0x5a, 0xff] {
            let (id, key) = new_key([bits; 20], [bits; 15]);
            assert_eq!(check_form(key.expose()), Ok(()));
            assert_eq!(
                key.expose()
                    .split_once('_')
                    .map(|(id, _)| format!("ak_{id}")),
                Some(id.to_string())
            );
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        let (id, key) = new_key([7; 20], [9; 15]);
        let error = check_form(id.as_str()).expect_err("an id");
        assert_eq!(error.code, Some("ERR_NGROK_208"));
        for text in ["", "TEST_KEY", &key.expose()[1..], &key.expose()[..48], "é"] {
            let error = check_form(text).expect_err(text);
            assert_eq!(error.code, Some("ERR_NGROK_202"));
            assert!(text.is_empty() || !error.message.contains(text));
        }
    }
}
