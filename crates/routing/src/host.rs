//! Hosts (R16).
