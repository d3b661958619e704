//! Tables that fit a terminal of 100 columns, reasons under the row that they explain.

use anstyle::{AnsiColor, Style};
use model::{
    diagnostic::Severity,
    status::{Reason, RouteState, RouteStatus, Status},
};

/// The width that everything fits.
pub(crate) const WIDTH: usize = 100;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();

/// The colour of a state.
pub(crate) const fn style(state: RouteState) -> Style {
    match state {
        RouteState::Open => GREEN,
        RouteState::Held | RouteState::Removing => YELLOW,
        RouteState::Closed => RED,
    }
}

/// Lays out columns with two blanks between them. Where that is wider than the terminal, the
/// widest columns give way first, none below `least`.
pub(crate) fn columns(rows: &[Vec<String>], least: &[usize]) -> Vec<String> {
    let mut widths: Vec<usize> = (0..least.len())
        .map(|i| {
            rows.iter()
                .filter_map(|row| row.get(i))
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let room = WIDTH - 2 * least.len().saturating_sub(1);
    while widths.iter().sum::<usize>() > room {
        let widest = (0..widths.len())
            .filter(|i| widths[*i] > least[*i])
            .max_by_key(|i| widths[*i]);
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    rows.iter()
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{:<width$}", shorten(cell, *width)))
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect()
}

/// Cuts in the middle, so that both ends of a name stay readable.
fn shorten(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let tail = limit / 3;
    let head = limit.saturating_sub(tail + 1);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Breaks a text into lines of at most `width` characters, at blanks where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word = word;
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        while word.chars().count() > width {
            let cut = word
                .char_indices()
                .nth(width)
                .map_or(word.len(), |(at, _)| at);
            lines.push(word[..cut].to_owned());
            word = &word[cut..];
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A reason with where it stands and what to do, wrapped under the row.
pub(crate) fn reason_lines(reason: &Reason) -> Vec<String> {
    let place = match (&reason.file, reason.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        _ => String::new(),
    };
    let (word, style) = match reason.severity {
        Severity::Error => ("error", RED),
        Severity::Warning => ("warning", YELLOW),
    };
    let text = format!("{}: {}{place}", reason.object, reason.message);
    let mut lines = Vec::new();
    for (number, line) in wrap(&text, WIDTH - 13).into_iter().enumerate() {
        lines.push(if number == 0 {
            format!("    {style}{word:<7}{style:#}  {line}")
        } else {
            format!("             {line}")
        });
    }
    if let Some(remedy) = &reason.remedy {
        for (number, line) in wrap(remedy, WIDTH - 13).into_iter().enumerate() {
            let word = if number == 0 { "do" } else { "" };
            lines.push(format!("    {DIM}{word:<7}{DIM:#}  {line}"));
        }
    }
    lines
}

fn row(route: &RouteStatus) -> Vec<String> {
    let path = match route.path_type.as_str() {
        "exact" => format!("={}", route.path),
        "string_prefix" => format!("{}*", route.path),
        _ => route.path.clone(),
    };
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let modules = if route.modules.is_empty() {
        "-".to_owned()
    } else {
        route.modules.join(",")
    };
    vec![
        route.host.clone(),
        path,
        route.state.name().to_owned(),
        modules,
        dash(&route.backend),
    ]
}

/// The table of routes, one row a route, its reasons below it.
pub(crate) fn routes(status: &Status) -> Vec<String> {
    let mut rows = vec![
        ["HOST", "PATH", "STATE", "MODULES", "BACKEND"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(status.routes.iter().map(row));
    let mut lines = columns(&rows, &[20, 10, 8, 12, 14]).into_iter();
    let mut out: Vec<String> = lines
        .next()
        .map(|head| format!("{BOLD}{head}{BOLD:#}"))
        .into_iter()
        .collect();
    for (route, line) in status.routes.iter().zip(lines) {
        let word = route.state.name();
        let style = style(route.state);
        // The state is the third column: colour it where it stands, not where a host says "open".
        let coloured = line.rfind(&format!("  {word}")).map_or_else(
            || line.clone(),
            |at| {
                let at = at + 2;
                format!(
                    "{}{style}{word}{style:#}{}",
                    &line[..at],
                    &line[at + word.len()..]
                )
            },
        );
        out.push(coloured);
        out.extend(route.reasons.iter().flat_map(reason_lines));
    }
    if status.routes.is_empty() {
        out.push("no routes are declared".to_owned());
    }
    for finding in &status.diagnostics {
        out.extend(reason_lines(finding));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let long = "x".repeat(150);
        let reason = Reason {
            code: "secret-missing".into(),
            severity: Severity::Error,
            message: format!("the Secret {long} does not exist, and more words follow until it is long"),
            object: "Ingress default/game-2048".into(),
            field: None,
            file: Some("examples/game-2048/manifest.yml".into()),
            line: Some(12),
            remedy: Some("create it with the key client-secret and a value that is not empty, then wait a second".into()),
        };
        let route = RouteStatus {
            host: format!("{long}.example.com"),
            path: format!("/{long}"),
            path_type: "exact".into(),
            state: RouteState::Closed,
            since: None,
            serving: None,
            wanted: None,
            modules: vec!["ipRestriction".into(), "headers".into(), "oauth".into()],
            backend: Some(format!("default/{long}:80")),
            owner: None,
            reasons: vec![reason.clone()],
        };
        let status = Status {
            routes: vec![route],
            diagnostics: vec![reason],
        };
        for line in routes(&status) {
            let plain = anstream::adapter::strip_str(&line).to_string();
            assert!(
                plain.chars().count() <= WIDTH,
                "{} columns: {plain}",
                plain.chars().count()
            );
        }
    }
}
