//! The border to the HTTP codec, which is hyper for now.
//!
//! What crosses it are the types of the `http` crate (heads), `http_body::Body` (bodies as a
//! stream of bounded chunks, both ways) and bare connections (upgrades, out of `without_shutdown`
//! and `into_parts`). hyper is named in `connection` (server), `upstream::pool` (client) and in
//! the type of incoming bodies, nowhere else. The guard makes what reaches it unambiguous.

pub(crate) mod chunks;
pub(crate) mod control;
pub(crate) mod guard;
pub(crate) mod head;
