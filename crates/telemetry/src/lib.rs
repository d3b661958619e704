//! What operators see of a running process: logs, metrics and the admin listener.

pub mod admin;
pub mod logs;
pub mod metrics;
