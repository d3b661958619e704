//! The corpus of bypass attempts, as far as it needs no socket: each case is read, matched and
//! judged as the proxy does it, and every defence is switched off once to see that it is needed.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use model::{
    backend::BackendKind,
    id::{BackendId, EdgeId, RouteId, StaticId},
    module::{IpRules, Modules},
};
use routing::{
    chain::{Chain, Facts},
    headers::{Nominations, RequestFilter, added},
    host::{self, Scheme, Version},
    modules::ip_restriction::AddressSet,
    path::{check_query, normalise},
    refusal::Refusal,
    table::{BackendEntry, CompiledSet, EdgeEntry, Handshake, RouteEntry, RouteOutcome, Table},
    target::Target,
};
use testkit::bypass::{Case, Fields, Sent, WorldRoute, corpus, world};

const DEFENCES: [&str; 6] = [
    "path",
    "readings",
    "host",
    "handshake",
    "headers",
    "addresses",
];

fn table() -> Table {
    Table::new(world().into_iter().map(|host| {
        let name = host.pattern.as_str().to_owned();
        let route = |route: WorldRoute| {
            let WorldRoute {
                place,
                modules,
                backend,
            } = route;
            let outcome = backend.map_or(RouteOutcome::Refuse(Refusal::RouteClosed), |backend| {
                let chain = Chain::compile(&modules, &[]).expect("the world is enforced");
                RouteOutcome::Serve(Arc::new(CompiledSet {
                    chain,
                    backend: Arc::new(BackendEntry {
                        id: BackendId::Static(StaticId::derived(&[&backend])),
                        kind: BackendKind::Static { address: backend },
                        service: None,
                        endpoints: Vec::new(),
                    }),
                }))
            });
            RouteEntry {
                id: RouteId::derived(&[&name, &place.to_string()]),
                place,
                generation: 1,
                outcome,
            }
        };
        let routes = host.routes.into_iter().map(route).collect();
        (
            host.pattern,
            Arc::new(EdgeEntry::new(
                EdgeId::derived(&[&name]),
                host.demands,
                None,
                1,
                routes,
            )),
        )
    }))
}

/// The modules of a route as the world says them.
fn modules_of(pattern: &str, route: &RouteEntry) -> Modules<IpRules> {
    let hosts = world()
        .into_iter()
        .filter(|host| host.pattern.as_str() == pattern);
    let mut routes = hosts
        .flat_map(|host| host.routes)
        .filter(|other| other.place == route.place);
    routes.next().expect("a route of the world").modules
}

/// A request as a parser hands it over.
struct Head {
    version: Version,
    scheme: Option<String>,
    authority: Option<String>,
    target: String,
    headers: Fields,
}

impl Head {
    fn read(sent: &Sent) -> Result<Self, Refusal> {
        match sent {
            Sent::Http1(bytes) => Self::http1(bytes),
            Sent::Http2 {
                headers,
                body: _,
                trailers: _,
            } => Self::http2(headers),
        }
    }

    fn http1(bytes: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::MalformedRequest)?;
        let (head, _) = text
            .split_once("\r\n\r\n")
            .ok_or(Refusal::MalformedRequest)?;
        let mut lines = head.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
        let [_, target, "HTTP/1.1"] = words.as_slice() else {
            return Err(Refusal::MalformedRequest);
        };
        let mut headers = Fields::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Refusal::BadHeader)?;
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(Refusal::BadHeader);
            }
            headers.push((name.into(), value.trim_matches([' ', '\t']).into()));
        }
        let Target {
            scheme,
            authority,
            path,
            query,
        } = Target::parse(target)?;
        let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let own = |text: Option<&str>| text.map(str::to_owned);
        Ok(Self {
            version: Version::Http1,
            scheme: own(scheme),
            authority: own(authority),
            target,
            headers,
        })
    }

    fn http2(fields: &Fields) -> Result<Self, Refusal> {
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Refusal::MalformedRequest);
        let mut head = Self {
            version: Version::Http2,
            scheme: None,
            authority: None,
            target: String::new(),
            headers: Fields::new(),
        };
        let mut seen = BTreeSet::new();
        for (name, value) in fields {
            if name.first() == Some(&b':') && !seen.insert(name) {
                return Err(Refusal::MalformedRequest);
            }
            match name.as_slice() {
                b":method" => {}
                b":scheme" => head.scheme = Some(text(value)?),
                b":authority" => head.authority = Some(text(value)?),
                b":path" => head.target = text(value)?,
                // RFC 9113 section 8.2.2.
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade" => {
                    return Err(Refusal::BadHeader);
                }
                b"te" if value != b"trailers" => return Err(Refusal::BadHeader),
                _ => head.headers.push((name.clone(), value.clone())),
            }
        }
        Ok(head)
    }

    fn values<'h>(&'h self, wanted: &'static str) -> impl Iterator<Item = &'h [u8]> {
        let named = move |name: &[u8]| name.eq_ignore_ascii_case(wanted.as_bytes());
        self.headers
            .iter()
            .filter(move |(name, _)| named(name))
            .map(|(_, value)| value.as_slice())
    }
}

/// What the backend gets.
#[derive(Debug)]
struct Reached {
    backend: String,
    target: String,
    headers: Fields,
}

fn attempt(table: &Table, case: &Case, without: Option<&str>) -> Result<Reached, Refusal> {
    let with = |defence| without != Some(defence);
    let head = Head::read(&case.sent)?;
    host::check_scheme(head.scheme.as_deref(), Scheme::Https)?;
    let (host, forwarded_host) = if with("host") {
        let asked = host::requested(
            head.version,
            Scheme::Https,
            head.authority.as_deref(),
            head.values("host"),
        )?;
        (asked.host().to_owned(), asked.to_string())
    } else {
        let first = head
            .values("host")
            .next()
            .map(|value| String::from_utf8_lossy(value).into_owned());
        let first = first.or_else(|| head.authority.clone()).unwrap_or_default();
        (first.clone(), first)
    };
    let Target {
        scheme: _,
        authority: _,
        path,
        query,
    } = Target::parse_path(&head.target)?;
    if let Some(query) = query {
        check_query(query)?;
    }
    let path = if with("path") {
        normalise(path)?.into_owned()
    } else {
        path.to_owned()
    };
    let entry = table.host(&host).ok_or(Refusal::UnknownHost)?;
    if with("handshake") {
        let handshake = Handshake {
            server_name: case.sni.clone(),
            version: case.tls,
            authorities: None,
        };
        table.check_handshake(&handshake, &host, &entry.edge)?;
    }
    let route = if with("readings") {
        entry.edge.select(&path).route()?
    } else {
        entry
            .edge
            .routes()
            .iter()
            .find(|route| route.place.matches(&path))
            .ok_or(Refusal::NoRoute)?
    };
    let facts = Facts::new(case.peer, "GET", &host, &path);
    let set = if with("addresses") {
        route.admit(&facts)?.set()
    } else {
        let restriction = modules_of(entry.pattern.as_str(), route).ip_restriction;
        let fine = restriction
            .is_none_or(|module| AddressSet::admitted_by(&module.policies).contains(case.peer));
        match &route.outcome {
            RouteOutcome::Serve(set) if fine => set,
            RouteOutcome::Serve(_) => return Err(Refusal::AddressRefused),
            RouteOutcome::Refuse(reason) => return Err(*reason),
        }
    };
    let BackendKind::Static { address: backend } = &set.backend.kind else {
        unreachable!("all are static")
    };
    let target = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let headers = forwarded(&head, &forwarded_host, facts.client(), set, with("headers"))?;
    Ok(Reached {
        backend: backend.clone(),
        target,
        headers,
    })
}

fn forwarded(
    head: &Head,
    host: &str,
    client: IpAddr,
    set: &CompiledSet,
    filtered: bool,
) -> Result<Fields, Refusal> {
    let edits = set.chain.request_headers();
    let nominations = Nominations::parse(head.values("connection"))?;
    let filter = RequestFilter {
        nominations,
        edits,
        method_decides: set.chain.method_decides(),
    };
    let kept =
        |name: &[u8]| (!filtered || filter.keeps(name)) && !name.eq_ignore_ascii_case(b"host");
    let mut headers: Fields = head
        .headers
        .iter()
        .filter(|(name, _)| kept(name))
        .cloned()
        .collect();
    let client = client.to_string();
    let own = [
        ("host", host),
        (added::FORWARDED_FOR, &client),
        (added::FORWARDED_PROTO, "https"),
        (added::FORWARDED_HOST, host),
        (added::REQUEST_ID, "id"),
    ];
    let edited = edits.into_iter().flat_map(|edits| edits.added());
    headers.extend(
        own.into_iter()
            .chain(edited)
            .map(|(name, value)| (name.into(), value.into())),
    );
    Ok(headers)
}

/// Names that a backend may take for one.
fn folded(name: &[u8]) -> Vec<u8> {
    name.iter()
        .map(|byte| {
            if *byte == b'_' {
                b'-'
            } else {
                byte.to_ascii_lowercase()
            }
        })
        .collect()
}

/// What is wrong with the outcome, if anything.
fn complaint(case: &Case, outcome: &Result<Reached, Refusal>) -> Option<String> {
    let expected = &case.expected;
    let reached = match (outcome, &expected.reaches) {
        (Err(reason), None) => {
            let fine = expected.refused.is_empty()
                || expected.refused.iter().any(|label| label == reason.label());
            return (!fine)
                .then(|| format!("refused as {reason}, expected {:?}", expected.refused));
        }
        (Err(reason), Some(backend)) => {
            return Some(format!("refused as {reason}, expected {backend}"));
        }
        (Ok(reached), None) => return Some(format!("reached {}", reached.backend)),
        (Ok(reached), Some(backend)) if reached.backend != *backend => {
            return Some(format!("reached {}", reached.backend));
        }
        (Ok(reached), Some(_)) => reached,
    };
    if let Some(target) = expected
        .target
        .as_ref()
        .filter(|target| **target != reached.target)
    {
        return Some(format!("saw target {}, expected {target}", reached.target));
    }
    for (name, value) in &expected.headers {
        let seen: Vec<_> = reached
            .headers
            .iter()
            .filter(|(other, _)| folded(other) == name.as_bytes())
            .collect();
        if !matches!(seen.as_slice(), [(_, only)] if only == value.as_bytes()) {
            return Some(format!("saw {name} as {seen:?}, expected {value}"));
        }
    }
    let unwanted = |name: &&String| {
        reached
            .headers
            .iter()
            .any(|(other, _)| folded(other) == folded(name.as_bytes()))
    };
    expected
        .no_headers
        .iter()
        .find(unwanted)
        .map(|name| format!("saw {name}"))
}

#[test]
fn every_attempt_ends_as_it_must() {
    let table = table();
    let cases: Vec<Case> = corpus()
        .into_iter()
        .filter(|kind| kind.is_pure)
        .flat_map(|kind| kind.cases)
        .collect();
    let complaints: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            complaint(case, &attempt(&table, case, None))
                .map(|what| format!("{}: {what}", case.name))
        })
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(cases.len() > 200, "{} cases", cases.len());
}

#[test]
fn without_its_defence_every_kind_of_attempt_gets_through() {
    let table = table();
    for kind in corpus().into_iter().filter(|kind| kind.is_pure) {
        assert!(
            DEFENCES.contains(&kind.defence.as_str()),
            "{}: no defence {}",
            kind.name,
            kind.defence
        );
        let failing =
            |case: &&Case| complaint(case, &attempt(&table, case, Some(&kind.defence))).is_some();
        assert!(
            kind.cases.iter().any(|case| failing(&case)),
            "{} needs no {}",
            kind.name,
            kind.defence
        );
    }
}
