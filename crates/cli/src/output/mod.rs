//! What people and programs read on standard output.

use std::io::Write as _;

use clap::ValueEnum;

pub(crate) mod events;
pub(crate) mod live;
pub(crate) mod table;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

/// The form of what a running process prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Running {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes to standard output, colours only where a terminal reads them.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::AutoStream::auto(std::io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes lines.
pub(crate) fn print_lines(lines: &[String]) -> anyhow::Result<()> {
    let mut text = lines.join("\n");
    text.push('\n');
    print(&text)
}
