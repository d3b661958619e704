//! The corpus of bypass attempts (R16): reads `tests/bypass/*.txt`, whose format is told in the
//! `README.md` there, and describes the small world that they attack.
//!
//! `routing` runs the cases that need no socket, `edge-proxy` all of them over HTTP/1.1 and
//! HTTP/2. Both build the same [`world`] and so mean the same by "reaches".

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::IpAddr,
    path::Path,
};

use model::{
    host::HostPattern,
    module::{EdgeDemands, HeaderChanges, IpAction, IpRestriction, IpRules, Modules, TlsVersion},
    place::{Match, MatchType},
};

/// Names and values as bytes, in order.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// One file: attempts of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The file's name without `.txt`.
    pub name: String,
    /// The defence without which at least one case fails.
    pub defence: String,
    /// Whether the verdict follows from target, headers and connection facts alone.
    pub is_pure: bool,
    /// The attempts.
    pub cases: Vec<Case>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct Case {
    /// `FILE:LINE: what it tries`.
    pub name: String,
    /// The server name of the handshake; absent: none is sent.
    pub sni: Option<String>,
    /// The TLS version to force.
    pub tls: TlsVersion,
    /// Where the client connects from. An IPv4-mapped address: over a socket that listens on
    /// IPv6 and IPv4 alike.
    pub peer: IpAddr,
    /// What is sent.
    pub sent: Sent,
    /// What must come of it.
    pub expected: Expected,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// These bytes, at once; HTTP/1.1 in ALPN.
    Http1(Vec<u8>),
    /// One request; `h2` in ALPN. Names and values go out as they are, well-formed or not.
    Http2 {
        /// Pseudo-headers first, as written.
        headers: Fields,
        /// Sent in one DATA frame if present.
        body: Option<Vec<u8>>,
        /// Sent behind the body if not empty.
        trailers: Fields,
    },
}

/// What must come of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The backend that answers; absent: none may be reached.
    pub reaches: Option<String>,
    /// Labels of the reasons for which it may be refused; empty: in any way (status, reset, close).
    pub refused: Vec<String>,
    /// Request target that the backend sees.
    pub target: Option<String>,
    /// Headers that it sees, lower-case name and whole value; each exactly once.
    pub headers: Vec<(String, String)>,
    /// Names (any spelling with `_` for `-` included) that it does not see, among the trailers neither.
    pub no_headers: Vec<String>,
    /// How many requests backends see in all; absent: one if something is reached, else none.
    pub requests: Option<usize>,
}

/// A host of the world.
#[derive(Clone, Debug)]
pub struct WorldHost {
    /// Its pattern.
    pub pattern: HostPattern,
    /// Its demands.
    pub demands: EdgeDemands,
    /// Its routes.
    pub routes: Vec<WorldRoute>,
}

/// A route of the world.
#[derive(Clone, Debug)]
pub struct WorldRoute {
    /// What it matches.
    pub place: Match,
    /// Its modules.
    pub modules: Modules<IpRules>,
    /// Its backend's name; absent: closed.
    pub backend: Option<String>,
}

/// What the attempts are made on. Clients come from loopback addresses.
#[must_use]
pub fn world() -> Vec<WorldHost> {
    use MatchType::{ElementPrefix, Exact, StringPrefix};
    let route = |kind, path: &str, modules: Modules<IpRules>, backend: &str| WorldRoute {
        place: Match::new(kind, path),
        modules,
        backend: (backend != "closed").then(|| backend.to_owned()),
    };
    let open = |kind, path: &str, backend: &str| route(kind, path, Modules::default(), backend);
    let only = |backend: &str| vec![open(ElementPrefix, "/", backend)];
    let guarded = |entries: &[(&str, IpAction)], backend: &str| {
        vec![route(ElementPrefix, "/", restricted(entries), backend)]
    };
    let strict = EdgeDemands {
        tls_minimum: Some(TlsVersion::V1_3),
        mutual_tls: None,
    };
    let host = |name: &str, demands: &EdgeDemands, routes| WorldHost {
        pattern: HostPattern::parse(name).expect("a host of the world"),
        demands: demands.clone(),
        routes,
    };
    let lax = EdgeDemands::default();
    vec![
        host(
            "open.test",
            &lax,
            vec![
                open(ElementPrefix, "/", "root"),
                route(
                    ElementPrefix,
                    "/admin",
                    restricted(&[("203.0.113.0/24", IpAction::Allow)]),
                    "admin",
                ),
                open(ElementPrefix, "/closed", "closed"),
                open(Exact, "/exact", "exact"),
                open(ElementPrefix, "/me@home", "home"),
                open(StringPrefix, "/pre", "prefix"),
            ],
        ),
        host("other.test", &lax, only("other")),
        host("strict.test", &strict, only("strict")),
        host("*.wild.test", &lax, only("wild")),
        host("shut.wild.test", &lax, only("closed")),
        host(
            "local.test",
            &lax,
            guarded(&[("127.0.0.0/8", IpAction::Allow)], "local"),
        ),
        host(
            "denied.test",
            &lax,
            guarded(
                &[
                    ("0.0.0.0/0", IpAction::Allow),
                    ("::/0", IpAction::Allow),
                    ("127.0.0.2/32", IpAction::Deny),
                ],
                "denied",
            ),
        ),
        host(
            "edited.test",
            &lax,
            vec![route(ElementPrefix, "/", edited(), "edited")],
        ),
    ]
}

fn restricted(entries: &[(&str, IpAction)]) -> Modules<IpRules> {
    let rules = entries
        .iter()
        .map(|(network, action)| (network.parse().expect("a network"), *action))
        .collect();
    let restriction = IpRestriction {
        enabled: true,
        policies: vec![IpRules(rules)],
    };
    Modules {
        ip_restriction: Some(restriction),
        ..Modules::default()
    }
}

fn edited() -> Modules<IpRules> {
    let add = [("x-added", "edge"), ("x-both", "edge")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let changes = HeaderChanges {
        enabled: true,
        add: BTreeMap::from(add),
        remove: BTreeSet::from(["x-both", "x-secret"].map(str::to_owned)),
    };
    Modules {
        request_headers: Some(changes),
        ..Modules::default()
    }
}

/// Every file of the corpus, by name.
#[must_use]
pub fn corpus() -> Vec<Kind> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bypass");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("tests/bypass is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Kind {
    let name = path
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let text = fs::read_to_string(path).expect("a text file");
    let mut kind = Kind {
        name: name.clone(),
        defence: String::new(),
        is_pure: false,
        cases: Vec::new(),
    };
    let mut draft: Option<Draft> = None;
    for (number, line) in text.lines().enumerate() {
        let place = format!("{name}.txt:{}", number + 1);
        if let Some(title) = line.strip_prefix("=== ") {
            kind.cases
                .extend(draft.take().into_iter().flat_map(Draft::finish));
            draft = Some(Draft::new(format!("{place}: {title}")));
        } else if line.is_empty() || line.starts_with('#') {
            // Between cases.
        } else if let Some(draft) = &mut draft {
            draft
                .line(line)
                .unwrap_or_else(|| panic!("{place}: not understood: {line}"));
        } else {
            match line.split_once(": ") {
                Some(("defence", value)) => value.clone_into(&mut kind.defence),
                Some(("pure", value)) => kind.is_pure = value == "yes",
                Some(_) | None => panic!("{place}: not understood: {line}"),
            }
        }
    }
    kind.cases.extend(draft.into_iter().flat_map(Draft::finish));
    assert!(!kind.defence.is_empty(), "{name}.txt names no defence");
    kind
}

#[derive(Default)]
struct Draft {
    name: String,
    host: String,
    sni: Option<String>,
    tls: Option<TlsVersion>,
    peer: Option<IpAddr>,
    get: Option<Vec<u8>>,
    with: Fields,
    http1: Option<Vec<u8>>,
    headers: Fields,
    body: Option<Vec<u8>>,
    trailers: Fields,
    expected: Option<Expected>,
}

impl Draft {
    fn new(name: String) -> Self {
        Self {
            name,
            host: String::from("open.test"),
            ..Self::default()
        }
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if let Some(raw) = line.strip_prefix("| ").or_else(|| line.strip_prefix('|')) {
            let bytes = self.http1.get_or_insert_default();
            let (raw, ends) = raw
                .strip_suffix('\\')
                .map_or((raw, true), |raw| (raw, false));
            bytes.extend(unescape(raw));
            if ends {
                bytes.extend(b"\r\n");
            }
            return Some(());
        }
        let (word, rest) = line.trim_start().split_once(' ')?;
        let has_verdict = self.expected.is_some();
        match (word, has_verdict) {
            ("host", false) => rest.clone_into(&mut self.host),
            ("sni", false) => self.sni = Some(rest.to_owned()),
            ("tls", false) => {
                self.tls = Some(match rest {
                    "1.2" => TlsVersion::V1_2,
                    "1.3" => TlsVersion::V1_3,
                    _ => return None,
                });
            }
            ("peer", false) => self.peer = Some(rest.parse().ok()?),
            ("get", false) => self.get = Some(unescape(rest)),
            ("with", false) => self.with.push(field(rest)?),
            ("h2", false) => self.headers.push(field(rest)?),
            ("h2-body", false) => self.body = Some(unescape(rest)),
            ("h2-trailer", false) => self.trailers.push(field(rest)?),
            ("->", false) => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                self.expected = Some(match words.as_slice() {
                    ["reaches", name] => Expected {
                        reaches: Some((*name).to_owned()),
                        ..Expected::default()
                    },
                    ["refused", labels @ ..] => {
                        let refused = labels.iter().map(|label| (*label).to_owned()).collect();
                        Expected {
                            refused,
                            ..Expected::default()
                        }
                    }
                    _ => return None,
                });
            }
            ("target", true) => self.expected.as_mut()?.target = Some(rest.to_owned()),
            ("header", true) => {
                let (name, value) = rest.split_once(": ")?;
                self.expected
                    .as_mut()?
                    .headers
                    .push((name.to_owned(), value.to_owned()));
            }
            ("no-header", true) => {
                self.expected
                    .as_mut()?
                    .no_headers
                    .extend(rest.split_whitespace().map(str::to_owned));
            }
            ("requests", true) => self.expected.as_mut()?.requests = Some(rest.parse().ok()?),
            (_, _) => return None,
        }
        Some(())
    }

    /// One case, or two where the same request goes over both versions.
    fn finish(self) -> Vec<Case> {
        let name = self.name;
        let expected = self
            .expected
            .unwrap_or_else(|| panic!("{name}: no verdict"));
        let mut sent = Vec::new();
        if let Some(target) = &self.get {
            let mut bytes = [
                b"GET ".as_slice(),
                target,
                b" HTTP/1.1\r\nHost: ",
                self.host.as_bytes(),
                b"\r\n",
            ]
            .concat();
            let mut headers = vec![
                (b":method".to_vec(), b"GET".to_vec()),
                (b":scheme".to_vec(), b"https".to_vec()),
                (b":authority".to_vec(), self.host.clone().into_bytes()),
                (b":path".to_vec(), target.clone()),
            ];
            for (name, value) in &self.with {
                bytes.extend([name.as_slice(), b": ", value, b"\r\n"].concat());
                headers.push((name.to_ascii_lowercase(), value.clone()));
            }
            bytes.extend(b"\r\n");
            sent.push(Sent::Http1(bytes));
            sent.push(Sent::Http2 {
                headers,
                body: None,
                trailers: Vec::new(),
            });
        }
        sent.extend(self.http1.map(Sent::Http1));
        if !self.headers.is_empty() {
            sent.push(Sent::Http2 {
                headers: self.headers,
                body: self.body,
                trailers: self.trailers,
            });
        }
        assert!(!sent.is_empty(), "{name}: nothing is sent");
        let sni = self.sni.unwrap_or_else(|| self.host.clone());
        sent.into_iter()
            .map(|sent| Case {
                name: match sent {
                    Sent::Http1(_) => format!("{name} (HTTP/1.1)"),
                    Sent::Http2 { .. } => format!("{name} (HTTP/2)"),
                },
                sni: (sni != "none").then(|| sni.clone()),
                tls: self.tls.unwrap_or(TlsVersion::V1_3),
                peer: self.peer.unwrap_or(IpAddr::from([127, 0, 0, 1])),
                sent,
                expected: expected.clone(),
            })
            .collect()
    }
}

/// `name: value`; a pseudo-header's name begins with a colon.
fn field(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (name, value) = text
        .split_once(": ")
        .or_else(|| Some((text.strip_suffix(':')?, "")))?;
    Some((unescape(name), unescape(value)))
}

/// `\r`, `\n`, `\t`, `\\` and `\xHH`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'r') => b'\r',
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&digits, 16).expect("two hexadecimal digits")
            }
            other => panic!("no escape: {other:?} in {text}"),
        });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_at_least_five_attempts_and_names_what_the_world_knows() {
        let backends: BTreeSet<String> = world()
            .into_iter()
            .flat_map(|host| host.routes)
            .filter_map(|route| route.backend)
            .collect();
        let kinds = corpus();
        assert!(kinds.len() >= 15, "the corpus is there");
        for kind in &kinds {
            let (old, new): (Vec<_>, Vec<_>) = kind
                .cases
                .iter()
                .partition(|case| matches!(case.sent, Sent::Http1(_)));
            let enough = old.len() >= 5 && new.len() >= 5;
            assert!(
                enough,
                "{}: {} over HTTP/1.1, {} over HTTP/2",
                kind.name,
                old.len(),
                new.len()
            );
            for Case { name, expected, .. } in &kind.cases {
                let known = expected
                    .reaches
                    .as_ref()
                    .is_none_or(|backend| backends.contains(backend));
                assert!(known, "{name}: no such backend");
                let sees = expected.target.is_some()
                    || !expected.headers.is_empty()
                    || !expected.no_headers.is_empty();
                assert!(
                    !sees || expected.reaches.is_some(),
                    "{name}: nobody is there to see it"
                );
            }
        }
    }
}
