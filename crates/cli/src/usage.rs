//! Mistakes in how the program was called: said in lines that fit, with exit code 2.

use std::{fmt, process::ExitCode};

use clap::{Parser, error::ErrorKind};

use crate::output::table::{WIDTH, wrap};

/// What was asked for cannot be: no state of files or edges would change that.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Ends a function with a [`Usage`].
macro_rules! wrong_usage {
    ($($words:tt)*) => {
        return Err($crate::usage::Usage(format!($($words)*)).into())
    };
}
pub(crate) use wrong_usage;

/// The program's arguments, or its end: help was asked for, or they are wrong.
pub(crate) fn arguments<A: Parser>() -> Result<A, ExitCode> {
    A::try_parse().map_err(|error| {
        let is_help = matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        if is_help {
            error.exit();
        }
        for line in fitting(&error.render().to_string()) {
            anstream::eprintln!("{line}");
        }
        ExitCode::from(2)
    })
}

/// The lines of a text, broken where they are too long, each under its own indentation.
fn fitting(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        if line.chars().count() <= WIDTH {
            lines.push(line.to_owned());
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let broken = wrap(line, WIDTH - indent);
        lines.extend(broken.iter().map(|part| format!("{:indent$}{part}", "")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_under_their_indentation() {
        let text = format!(
            "error: {}\n\n  {}\n",
            "word ".repeat(30),
            "more ".repeat(30)
        );
        let lines = fitting(&text);
        assert!(
            lines.iter().all(|line| line.chars().count() <= WIDTH),
            "{lines:#?}"
        );
        assert_eq!(lines[2], "");
        assert!(
            lines[3..].iter().all(|line| line.starts_with("  more")),
            "{lines:#?}"
        );
    }
}
