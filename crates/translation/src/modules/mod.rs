//! The rules for each kind of module: what the edge accepts, and what nobody should be served
//! with (R14). One file per kind; the fields are those of the edge API.

pub(crate) mod circuit_breaker;
pub(crate) mod compression;
pub(crate) mod headers;
pub(crate) mod ip_restriction;
pub(crate) mod login;
pub(crate) mod oauth;
pub(crate) mod oidc;
pub(crate) mod policy;
pub(crate) mod saml;
pub(crate) mod tls;
pub(crate) mod webhook;

/// Longest client id, secret, scope and list entry, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 512;
/// Most entries of a list.
pub(crate) const LIST_ENTRIES_MAX: usize = 100;
/// Most policies of an IP restriction.
pub(crate) const POLICIES_MAX: usize = 10;
