//! The modules that are enforced, one file each.

pub mod headers;
pub mod ip_restriction;
