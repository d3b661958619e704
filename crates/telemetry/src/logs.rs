//! Log set-up: one place that decides format, level and where lines go.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, fmt::MakeWriter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A filter text that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a log level or filter (try info, debug, or edge_proxy=debug,info)")]
pub struct BadFilter {
    text: String,
}

/// Sends log lines to `writer`, which writes to standard error. Standard output belongs to the
/// command's own output.
///
/// # Errors
/// When `filter` cannot be read.
pub fn init(
    format: Format,
    filter: &str,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> Result<(), BadFilter> {
    let directives = filter.parse::<EnvFilter>().map_err(|_| BadFilter {
        text: filter.to_owned(),
    })?;
    let registry = tracing_subscriber::registry().with(directives);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    // A second initialisation (tests in one process) keeps the first.
    let _already = match format {
        Format::Text => registry.with(layer.with_target(false)).try_init(),
        Format::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    };
    Ok(())
}
