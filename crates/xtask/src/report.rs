//! What was run, and what came of it: one part failing does not keep the others from running, and
//! at the end stands a table that can be pasted as proof.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::run::say;

/// With the prefix of every line, a hundred columns.
const WIDTH: usize = 93;

/// A part that was run.
struct Part {
    name: &'static str,
    took: Duration,
    /// What is worth knowing about a success, or why there is none.
    outcome: Result<String, String>,
}

/// The parts so far, in order.
#[derive(Default)]
pub(crate) struct Report {
    parts: Vec<Part>,
}

impl Report {
    /// Runs a part and notes its outcome; whether it passed.
    pub(crate) fn part(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> anyhow::Result<String>,
    ) -> bool {
        say(&format!("--- {name}"));
        let begun = Instant::now();
        let outcome = work().map_err(|error| format!("{error:#}"));
        if let Err(error) = &outcome {
            say(&format!("{name}: failed: {error}"));
        }
        let passed = outcome.is_ok();
        self.parts.push(Part {
            name,
            took: begun.elapsed(),
            outcome,
        });
        passed
    }

    /// Prints the table; fails if a part did.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        say("");
        for line in self.lines() {
            say(&line);
        }
        let failed = self.parts.iter().filter(|part| part.outcome.is_err());
        match failed.count() {
            0 => Ok(()),
            count => bail!("{count} of {} parts", self.parts.len()),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:<22} {:<6} {:>6}  WITH",
            "PART", "RESULT", "TIME"
        )];
        for part in &self.parts {
            let (result, text) = match &part.outcome {
                Ok(note) => ("passed", note),
                Err(error) => ("FAILED", error),
            };
            let line = format!("{:<22} {result} {:>6}  {text}", part.name, short(part.took));
            // The whole error stands further up.
            let first = line.lines().next().unwrap_or_default().trim_end();
            lines.push(first.chars().take(WIDTH).collect());
        }
        let all = self.parts.iter().map(|part| part.took).sum();
        lines.push(format!("{:<22} {:<6} {:>6}", "all of it", "", short(all)));
        lines
    }
}

/// Minutes and seconds.
fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_does_not_hide_what_comes_after() {
        let mut report = Report::default();
        assert!(report.part("format", || Ok("rustfmt 1".to_owned())));
        assert!(!report.part("lints", || bail!("two warnings\nhere")));
        assert!(report.part("tests", || Ok("7 tests".to_owned())));
        assert_eq!(
            report.lines(),
            [
                "PART                   RESULT   TIME  WITH",
                "format                 passed   0:00  rustfmt 1",
                "lints                  FAILED   0:00  two warnings",
                "tests                  passed   0:00  7 tests",
                "all of it                       0:00",
            ]
        );
        assert_eq!(
            report.finish().expect_err("a part failed").to_string(),
            "1 of 3 parts"
        );
    }
}
