//! Diagnostics as text for a tired person, and as JSON for programs.
//!
//! The first line has the form that editors and CI systems recognise, `FILE:LINE:COLUMN:
//! error[CODE]: MESSAGE`; below it, indented, stand what to do and which object is meant. Nothing
//! that came from a manifest reaches a terminal as a control sequence.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use model::{
    diagnostic::{Cause, Diagnostic, Position, Severity},
    object::ObjectRef,
    status::Reason,
};

const INDENT: usize = 4;

/// How text is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colours are written.
    pub colours: bool,
    /// The columns that lines are wrapped at. A longer word stays whole: it may be a path.
    pub width: usize,
}

impl Style {
    /// For files, pipes and tests.
    pub const PLAIN: Self = Self {
        colours: false,
        width: 100,
    };
    /// For terminals.
    pub const COLOURED: Self = Self {
        colours: true,
        width: 100,
    };
}

/// Everything, by place, with a summary in the end; each line ends in a line break.
#[must_use]
pub fn text(diagnostics: &[Diagnostic], style: Style) -> String {
    let mut out = String::new();
    for diagnostic in sorted(diagnostics) {
        one(&mut out, diagnostic, style);
    }
    out.push_str(&summary(diagnostics));
    out.push('\n');
    out
}

/// `3 errors, 1 warning`.
#[must_use]
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let all = sorted(diagnostics);
    let errors = all.iter().filter(|d| d.severity == Severity::Error).count();
    let plural =
        |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    match (errors, all.len() - errors) {
        (0, 0) => "no errors".to_owned(),
        (0, warnings) => plural(warnings, "warning"),
        (errors, 0) => plural(errors, "error"),
        (errors, warnings) => format!(
            "{}, {}",
            plural(errors, "error"),
            plural(warnings, "warning")
        ),
    }
}

/// The same in the shape that `/status` has for reasons.
#[must_use]
pub fn reasons(diagnostics: &[Diagnostic]) -> Vec<Reason> {
    sorted(diagnostics).into_iter().map(Reason::from).collect()
}

/// By place, what has none last; the same finding once.
fn sorted(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    type Key<'a> = (
        bool,
        &'a Option<Position>,
        &'a ObjectRef,
        &'a str,
        Severity,
        &'a str,
        Cause,
        &'a str,
        &'a str,
    );
    fn key(diagnostic: &Diagnostic) -> Key<'_> {
        let Diagnostic {
            object,
            field,
            position,
            code,
            severity,
            cause,
            message,
            remedy,
        } = diagnostic;
        (
            position.is_none(),
            position,
            object,
            field,
            *severity,
            code,
            *cause,
            message,
            remedy,
        )
    }
    let mut all: Vec<_> = diagnostics.iter().collect();
    all.sort_by(|a, b| key(a).cmp(&key(b)));
    all.dedup();
    all
}

fn one(out: &mut String, diagnostic: &Diagnostic, style: Style) {
    let Diagnostic {
        object,
        field,
        position,
        code,
        severity,
        cause: _,
        message,
        remedy,
    } = diagnostic;
    let place = match position {
        Some(Position { file, line, column }) => format!("{}:{line}:{column}", printable(file)),
        None => printable(&object.to_string()),
    };
    let (word, colour) = match severity {
        Severity::Error => ("error", AnsiColor::Red),
        Severity::Warning => ("warning", AnsiColor::Yellow),
    };
    let words = format!("{place}: {word}[{code}]: {}", printable(message));
    let mut head = wrap(&words, style.width, 0);
    if style.colours {
        let bold = colour.on_default().bold();
        head = head.replacen(
            &format!("{word}[{code}]"),
            &format!("{bold}{word}[{code}]{bold:#}"),
            1,
        );
    }
    out.push_str(&head);
    if !remedy.is_empty() {
        out.push_str(&wrap(&printable(remedy), style.width, INDENT));
    }
    let where_in = match (position.is_some(), field.is_empty()) {
        _ if object.kind.is_empty() && object.name.is_empty() => String::new(),
        (true, true) => format!("in {object}"),
        (true, false) => format!("in {object}, {field}"),
        (false, true) => String::new(),
        (false, false) => format!("in {field}"),
    };
    if !where_in.is_empty() {
        let dim = anstyle::Style::new().dimmed();
        let line = wrap(&printable(&where_in), style.width, INDENT);
        if style.colours {
            let _ = write!(out, "{dim}{line}{dim:#}");
        } else {
            out.push_str(&line);
        }
    }
}

/// Lines of at most `width` columns, the first with the given indent, the others with [`INDENT`].
fn wrap(words: &str, width: usize, indent: usize) -> String {
    let mut out = " ".repeat(indent);
    let mut column = indent;
    let mut fresh = true;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if !fresh && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(INDENT));
            column = INDENT;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        fresh = false;
    }
    out.push('\n');
    out
}

/// Text from a manifest without control characters and without what reorders a line.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                // Writing to a String cannot fail.
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line: u32, severity: Severity, message: &str, remedy: &str) -> Diagnostic {
        Diagnostic {
            object: ObjectRef::new("Ingress", "default", "web"),
            field: "spec.rules[0].host".to_owned(),
            position: (line > 0).then(|| Position {
                file: "a.yaml".to_owned(),
                line,
                column: 5,
            }),
            code: "bad-value".to_owned(),
            severity,
            cause: Cause::Invalid,
            message: message.to_owned(),
            remedy: remedy.to_owned(),
        }
    }

    #[test]
    fn lines_are_sorted_and_counted() {
        let all = [
            diagnostic(0, Severity::Error, "from a cluster", ""),
            diagnostic(9, Severity::Warning, "second", ""),
            diagnostic(3, Severity::Error, "first", "mend it"),
            diagnostic(3, Severity::Error, "first", "mend it"),
        ];
        let expected = "\
a.yaml:3:5: error[bad-value]: first
    mend it
    in Ingress default/web, spec.rules[0].host
a.yaml:9:5: warning[bad-value]: second
    in Ingress default/web, spec.rules[0].host
Ingress default/web: error[bad-value]: from a cluster
    in spec.rules[0].host
2 errors, 1 warning
";
        assert_eq!(text(&all, Style::PLAIN), expected);
        assert_eq!(reasons(&all).len(), 3);
        assert_eq!(reasons(&all)[0].line, Some(3));
        assert_eq!(text(&[], Style::PLAIN), "no errors\n");
        assert_eq!(summary(&all[..1]), "1 error");
    }

    #[test]
    fn lines_fit_and_long_words_stay_whole() {
        let path = "x".repeat(150);
        let all = [diagnostic(
            1,
            Severity::Error,
            &format!("{} {path} end", "word ".repeat(40)),
            &"do it ".repeat(30),
        )];
        let text = text(&all, Style::PLAIN);
        for line in text.lines() {
            assert!(
                line.chars().count() <= 100 || line.contains(&path),
                "{line}"
            );
        }
        assert!(text.contains(&path));
    }

    #[test]
    fn a_manifest_cannot_drive_the_terminal() {
        let all = [diagnostic(
            1,
            Severity::Error,
            "a\u{1b}[31mred\nline\u{202e}",
            "\u{7}",
        )];
        let plain = text(&all, Style::PLAIN);
        assert!(plain.contains("a\\u{1b}[31mred line\\u{202e}"), "{plain}");
        assert!(!plain.contains('\u{1b}') && !plain.contains('\u{7}'));
        assert!(text(&all, Style::COLOURED).contains("\u{1b}[1m"));
    }
}
