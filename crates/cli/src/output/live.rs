//! The live table of `up`: on a terminal the table stays below the lines of what happened, on a
//! pipe there are only lines.

use std::io::{IsTerminal as _, Write as _};

use anstream::AutoStream;
use controller::events::Event;
use model::status::Status;

use super::{Running, events, table};

/// Standard output as a place for events and, on a terminal, a table.
pub(crate) struct Live {
    output: Running,
    terminal: bool,
    drawn: usize,
}

impl Live {
    pub(crate) fn new(output: Running) -> Self {
        let terminal = output == Running::Text && std::io::stdout().is_terminal();
        Self {
            output,
            terminal,
            drawn: 0,
        }
    }

    /// Prints what happened, then the table anew. Returns an error when nobody reads any more.
    pub(crate) fn show(
        &mut self,
        happened: &[Event],
        status: &Status,
        at: &str,
    ) -> std::io::Result<()> {
        let mut out = AutoStream::auto(std::io::stdout().lock());
        if self.terminal && self.drawn > 0 {
            // Up over the old table, and clear to the end of the screen (ECMA-48 CUU, ED).
            write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
        }
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
        if self.terminal {
            let mut lines = vec![String::new()];
            lines.extend(table::routes(status));
            let rows =
                terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
            let room = rows.saturating_sub(2).max(4);
            if lines.len() > room {
                lines.truncate(room - 1);
                lines.push("… more: portcullis status".to_owned());
            }
            for line in &lines {
                writeln!(out, "{line}")?;
            }
            self.drawn = lines.len();
        }
        out.flush()
    }

    /// Prints lines for people, above the table. Nothing on JSON output.
    pub(crate) fn say(&mut self, lines: &[String]) -> std::io::Result<()> {
        if self.output == Running::Json {
            return Ok(());
        }
        let mut out = AutoStream::auto(std::io::stdout().lock());
        if self.terminal && self.drawn > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
            self.drawn = 0;
        }
        for line in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}
