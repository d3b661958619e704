pub(crate) mod chunks;
pub(crate) mod guard;
pub(crate) mod head;
