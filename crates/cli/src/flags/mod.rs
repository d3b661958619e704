//! Flags that several subcommands share, each with its type, default and help in one place.

pub(crate) mod asking;
pub(crate) mod controlling;
pub(crate) mod edging;
pub(crate) mod values;
