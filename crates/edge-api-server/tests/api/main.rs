//! The edge API over real sockets, byte for byte where it matters.

#[path = "../common/mod.rs"]
mod common;

mod errors;
mod extensions;
mod pages;
mod reference;
mod roles;
mod secrets;
mod writes;
