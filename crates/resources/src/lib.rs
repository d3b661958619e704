//! The objects that declare and support routes: their types, strict decoding, and their CRDs.
//!
//! One description serves everything: the Rust types derive a schema, the schema becomes a
//! [`shape`], the shape judges documents ([`decode`]) and prints the CRDs ([`crds`]). So what is
//! accepted, what is typed and what the API server is told cannot drift apart.
//!
//! Nothing here looks at a second object: references, ownership and everything else that needs a
//! whole [`snapshot`] belongs to translation.

#![warn(missing_docs)]

pub mod builtin;
pub mod crds;
pub mod decode;
pub mod domain;
pub mod duration;
pub mod fraction;
pub mod https_edge;
pub mod ingress;
pub mod ip_policy;
pub mod kinds;
pub mod module_set;
pub mod oauth;
pub mod position;
pub mod problem;
pub mod rules;
mod salvage;
pub mod secret;
pub mod shape;
pub mod snapshot;
pub mod status;
mod suggestion;
pub mod tcp_edge;
pub mod tls_edge;
pub mod traffic_policy;
pub mod tunnel;
mod walk;
pub mod yaml;
