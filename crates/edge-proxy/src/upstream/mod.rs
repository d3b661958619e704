//! Backends: which addresses may be dialled, the connections kept to them, and the exchange of a
//! request for an answer.

pub(crate) mod body;
pub(crate) mod dial;
pub(crate) mod pool;
pub(crate) mod resolve;
pub(crate) mod send;
mod wire;
