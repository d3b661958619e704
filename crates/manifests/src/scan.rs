//! What a text that does not parse still gives away.
//!
//! A broken file may have declared anything. Before anything broader opens, the hosts that it
//! seems to name are staged closed (R3, R19), so this scan is lenient: it looks for words where
//! they usually stand, in block and flow style and in JSON, and does not care about structure. A
//! host too many costs a closed host; a host too few is covered by the kinds that were seen.

use std::collections::BTreeSet;

use model::host::HostPattern;

/// More names than this are not collected: then the file counts as one whose hosts are unknown.
const NAMES_MAX: usize = 10_000;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Everything that looks like a declared host.
    pub hosts: BTreeSet<HostPattern>,
    /// Everything that looks like a kind.
    pub kinds: BTreeSet<String>,
    /// Everything that looks like a namespace.
    pub namespaces: BTreeSet<String>,
    /// Whether hosts were left out: a value that is no host name, or too many of them.
    pub incomplete: bool,
}

/// Looks through a text.
#[must_use]
pub fn scan(bytes: &[u8]) -> Scan {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Scan::default();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut before = None;
    // Lists may hold what looks like lists: all of them together are read about once.
    let mut budget = text.len();
    while let Some(first) = rest.chars().next() {
        if !is_word(first) {
            before = Some(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        let starts_fresh =
            before.is_none_or(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '{' | ','));
        before = word.chars().next_back();
        if !starts_fresh {
            continue;
        }
        let Some(value) = value_behind(behind) else {
            continue;
        };
        match word {
            "host" | "domain" => found.host(first_value(value)),
            "hosts" | "hostports" => match list_values(value, &mut budget) {
                Some(values) => values.into_iter().for_each(|value| found.host(value)),
                None => found.incomplete = true,
            },
            "kind" => found.kind(first_value(value)),
            "namespace" => {
                let name = first_value(value);
                if !name.is_empty() && found.namespaces.len() < NAMES_MAX {
                    found.namespaces.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

impl Scan {
    fn host(&mut self, value: &str) {
        // Host and port, as an edge writes them.
        let name = value.split_once(':').map_or(value, |(name, _)| name);
        if name.is_empty() {
            return;
        }
        match HostPattern::parse(name) {
            Ok(host) if self.hosts.len() < NAMES_MAX => {
                self.hosts.insert(host);
            }
            Ok(_) | Err(_) => self.incomplete = true,
        }
    }

    fn kind(&mut self, value: &str) {
        if !value.is_empty() && self.kinds.len() < NAMES_MAX {
            self.kinds.insert(value.to_owned());
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// What stands behind a word that is a key: behind its closing quote and its colon.
fn value_behind(text: &str) -> Option<&str> {
    text.strip_prefix(['"', '\''])
        .unwrap_or(text)
        .trim_start_matches([' ', '\t'])
        .strip_prefix(':')
}

/// The value on the same line (or on the next, where nothing but space stands between).
fn first_value(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '[' | '&' | '|' | '>')
    });
    // A template or mapping stands where a text should: that is no value, and not nothing either.
    if text.starts_with('{') {
        return "{";
    }
    let end = text.find(ends_value).unwrap_or(text.len());
    let value = &text[..end];
    // `host:` without a value, and the next line is another key.
    value.strip_suffix(':').map_or(value, |_| "")
}

fn ends_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '[' | ']' | '{' | '}' | '#')
}

/// The values of a list in either style, up to what cannot be an item of it; `None` if the budget
/// for reading lists is used up.
fn list_values<'a>(text: &'a str, budget: &mut usize) -> Option<Vec<&'a str>> {
    if *budget == 0 {
        return None;
    }
    if let Some(flow) = text.trim_start_matches([' ', '\t']).strip_prefix('[') {
        let end = flow.find(']').unwrap_or(flow.len());
        *budget = budget.saturating_sub(end + 1);
        return Some(flow[..end].split(',').map(first_value).collect());
    }
    let mut values = vec![];
    for line in text.lines() {
        *budget = budget.saturating_sub(line.len() + 1);
        let line = line.trim();
        match line.strip_prefix('-') {
            Some(item) => values.push(first_value(item)),
            None if line.is_empty() || line.starts_with('#') => {}
            // The text begins behind the colon of the key: a value there is a list of one.
            None if values.is_empty() && !line.contains(": ") && !line.ends_with(':') => {
                values.push(first_value(line));
            }
            None => break,
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<String> {
        scan(text.as_bytes())
            .hosts
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn hosts_are_found_in_every_style() {
        let cases: [(&str, &[&str]); 14] = [
            (
                "rules:\n- host: a.example.com\n  http:\n",
                &["a.example.com"],
            ),
            (
                "rules:\n  - host: \"*.example.com\" # all\n",
                &["*.example.com"],
            ),
            (
                "rules: [{host: a.example.com, http: {}}",
                &["a.example.com"],
            ),
            (
                r#"{"rules":[{"host":"a.example.com","http":{}},{"host": 'b.example.com'"#,
                &["a.example.com", "b.example.com"],
            ),
            (
                "tls:\n- hosts:\n  - a.example.com\n  # more\n  - 'b.example.com'\n  secretName: c.example.com\n",
                &["a.example.com", "b.example.com"],
            ),
            (
                "tls:\n- hosts: [a.example.com, \"b.example.com\"]\n",
                &["a.example.com", "b.example.com"],
            ),
            ("hostports:\n- a.example.com:443\n", &["a.example.com"]),
            ("hostports: ['a.example.com:443']\n", &["a.example.com"]),
            ("spec:\n  domain: a.example.com\n", &["a.example.com"]),
            ("host:\n  a.example.com\n", &["a.example.com"]),
            ("host:\n  path: /\n", &[]),
            (
                "my-host: a.example.com\nx.host: b.example.com\nlocalhost: c.example.com\n",
                &[],
            ),
            ("- host: a.exam", &["a.exam"]),
            ("- host:", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(hosts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn kinds_and_namespaces_are_found() {
        let found = scan(b"kind: Ingress\nmetadata: {namespace: a}\n---\n{\"kind\":\"Secret\",\"namespace\":\"b\"}\n\xff");
        assert_eq!(
            found.kinds.iter().map(String::as_str).collect::<Vec<_>>(),
            ["Ingress", "Secret"]
        );
        assert_eq!(
            found
                .namespaces
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn hostile_texts_cost_linear_time() {
        let size = 1 << 18;
        let pieces = [
            "host:",
            ",host:",
            "{host:",
            "?host:",
            "\u{feff}host:",
            "\"host:",
            "- hosts:x\n",
            "hosts:[",
            " hosts:\n",
            "- hosts:\n- a\n",
            "hosts:\n",
            "a ",
            "-",
        ];
        for piece in pieces {
            let begin = std::time::Instant::now();
            let _ = scan(piece.repeat(size / piece.len()).as_bytes());
            assert!(
                begin.elapsed() < std::time::Duration::from_secs(10),
                "{piece:?}"
            );
        }
    }

    #[test]
    fn a_value_that_is_no_host_is_remembered() {
        assert!(scan(b"host: {{ .Values.host }}\n").incomplete);
        assert!(scan(b"host: bad_/host\n").incomplete);
        assert!(!scan(b"host: fine\n").incomplete);
    }
}
