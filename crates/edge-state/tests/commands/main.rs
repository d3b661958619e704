//! Every reason for a refusal, each brought about once, and what commands do to records, ages,
//! versions and owners.

mod effects;
mod refusals;
mod world;
