//! The live table of `up`: on a terminal the table stays below the lines of what happened, log
//! lines included; on a pipe there are only lines.

use std::{
    io::{self, IsTerminal as _, Write},
    sync::{Mutex, PoisonError},
};

use anstream::AutoStream;
use controller::events::Event;
use model::status::Status;

use super::{Running, events, table};

/// The table on the screen. One for the process: log lines of any thread go above it.
static TABLE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Writes above the table, which is then drawn anew, or as `table` has it.
fn above(
    table: Option<Vec<String>>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut drawn = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out = AutoStream::auto(io::stdout().lock());
    if !drawn.is_empty() {
        // Up over the old table, and clear to the end of the screen (ECMA-48 CUU, ED).
        write!(out, "\x1b[{}A\x1b[J", drawn.len())?;
        out.flush()?;
    }
    write(&mut out)?;
    if let Some(table) = table {
        *drawn = table;
    }
    for line in drawn.iter() {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// Whether what is printed and what is logged come together before a person.
pub(crate) fn one_screen() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Standard error for log lines, which must not end up inside the table.
pub(crate) struct AboveTable;

impl Write for AboveTable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if one_screen() {
            above(None, |_out| io::stderr().write_all(bytes))?;
        } else {
            io::stderr().write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Standard output as a place for events and, on a terminal, a table.
pub(crate) struct Live {
    output: Running,
    terminal: bool,
}

impl Live {
    pub(crate) fn new(output: Running) -> Self {
        let terminal = output == Running::Text && io::stdout().is_terminal();
        Self { output, terminal }
    }

    /// Prints what happened, then the table anew. Returns an error when nobody reads any more.
    pub(crate) fn show(&self, happened: &[Event], status: &Status, at: &str) -> io::Result<()> {
        let table = self.terminal.then(|| fitting(status));
        above(table, |out| {
            for event in happened {
                match self.output {
                    Running::Json => writeln!(out, "{}", events::json(event, at))?,
                    Running::Text => {
                        for line in events::lines(event, at) {
                            writeln!(out, "{line}")?;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Prints lines for people, above the table. Nothing on JSON output.
    pub(crate) fn say(&self, lines: &[String]) -> io::Result<()> {
        if self.output == Running::Json {
            return Ok(());
        }
        above(None, |out| {
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))
        })
    }
}

/// The table, as much of it as the screen holds.
fn fitting(status: &Status) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(table::routes(status));
    let rows = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
    let room = rows.saturating_sub(2).max(4);
    if lines.len() > room {
        lines.truncate(room - 1);
        lines.push("… more: portcullis status".to_owned());
    }
    lines
}
