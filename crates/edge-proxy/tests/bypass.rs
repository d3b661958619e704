//! The corpus of bypass attempts (R16) as bytes over TLS, HTTP/1.1 and HTTP/2, and the proof that
//! each of its kinds has teeth: without its defence at least one of its cases fails.
//!
//! Verdicts are read from bodies alone, which name the error or the backend, so that this client
//! needs no HTTP library that would mend what it sends.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use common::Edge;
use edge_proxy::Defences;
use edge_state::command::{Command, EdgeSpec, Expected as Generation, RouteSpec, Texts};
use edge_state::state::{PolicyRef, RouteBackend};
use model::{
    address::canonical,
    id::{DomainId, EdgeId, IpPolicyId, RouteId},
    module::{IpRules, TlsVersion},
};
use routing::refusal::Refusal;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::Value;
use testkit::{
    backend::Backend,
    bypass::{Case, Fields, Kind, Sent, corpus, world},
    client::{connect, read_answer},
};

/// After an answer: nothing more comes, also no answer to a request that was smuggled.
const SILENCE: Duration = Duration::from_millis(100);
/// Until an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The world of the corpus, served.
struct World {
    edge: Edge,
    backends: BTreeMap<String, Backend>,
}

impl World {
    fn start(defences: Defences) -> Self {
        let edge = Edge::start_with(|options| {
            options.https = SocketAddr::from(([0_u16; 8], 0));
            options.defences = defences;
        });
        let mut world = Self {
            edge,
            backends: BTreeMap::new(),
        };
        for host in self::world() {
            let id = EdgeId::derived(&[host.pattern.as_str()]);
            let routes = host.routes.into_iter().map(|route| RouteSpec {
                id: RouteId::derived(&[id.as_str(), &route.place.to_string()]),
                place: route.place,
                modules: route
                    .modules
                    .with_policies(|rules| Ok::<_, ()>(world.policy(rules)))
                    .expect("policies"),
                backend: route.backend.map(|name| RouteBackend {
                    enabled: true,
                    id: world.backend(&name),
                }),
                also_refuse: BTreeSet::new(),
                description: String::new(),
                metadata: String::new(),
                record: None,
            });
            let routes = routes.collect();
            world.edge.apply(Command::PutDomain {
                id: DomainId::derived(&[host.pattern.as_str()]),
                controller: None,
                host: host.pattern.clone(),
                namespace: None,
                heir: None,
                declared: true,
                texts: Texts::default(),
            });
            world.edge.apply(Command::ReplaceEdge(Box::new(EdgeSpec {
                id,
                expected: Generation::Absent,
                controller: Some(String::from("test")),
                hosts: BTreeSet::from([host.pattern]),
                demands: host.demands,
                certificate: None,
                description: String::new(),
                metadata: String::new(),
                routes,
            })));
        }
        world
    }

    fn policy(&self, rules: IpRules) -> PolicyRef {
        let id = IpPolicyId::derived(&[&format!("{rules:?}")]);
        let (controller, description, metadata) =
            (String::from("test"), String::new(), String::new());
        self.edge.apply(Command::PutIpPolicy {
            id: id.clone(),
            controller,
            description,
            metadata,
            rules,
        });
        PolicyRef { id, version: 1 }
    }

    fn backend(&mut self, name: &str) -> model::id::BackendId {
        let backend = Backend::never_switching(name);
        let id = self.edge.backend(name, &[backend.address]);
        self.backends.insert(name.to_owned(), backend);
        id
    }

    fn requests(&self) -> u64 {
        self.backends.values().map(Backend::requests).sum()
    }

    /// Sends an attempt; what comes back first, as text, if anything does.
    fn attempt(&self, case: &Case) -> io::Result<String> {
        let IpAddr::V4(peer) = canonical(case.peer) else {
            unreachable!("clients of the corpus have IPv4 addresses");
        };
        // The listener is for both families, so that every peer is seen in its mapped form.
        let address = SocketAddr::from(([127, 0, 0, 1], self.edge.running.https.port()));
        let stream = connect(address, Some(peer.into()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = case
            .sni
            .clone()
            .unwrap_or_else(|| String::from("open.test"));
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let session = ClientConnection::new(self.config(case), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        match &case.sent {
            Sent::Http1(bytes) => http1(&mut stream, bytes),
            Sent::Http2 {
                headers,
                body,
                trailers,
            } => http2(&mut stream, headers, body.as_deref(), trailers),
        }
    }

    fn config(&self, case: &Case) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let pem = std::fs::read(self.edge.running.authority_certificate()).expect("the authority");
        roots
            .add(CertificateDer::from_pem_slice(&pem).expect("PEM"))
            .expect("a certificate");
        let versions: &[_] = match case.tls {
            TlsVersion::V1_2 => &[&rustls::version::TLS12],
            TlsVersion::V1_3 => &[&rustls::version::TLS13],
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.enable_sni = case.sni.is_some();
        config.alpn_protocols = vec![match case.sent {
            Sent::Http1(_) => b"http/1.1".to_vec(),
            Sent::Http2 { .. } => b"h2".to_vec(),
        }];
        Arc::new(config)
    }

    /// What is wrong with what came of a case.
    fn check(&self, case: &Case) -> Result<(), String> {
        let before = self.requests();
        let outcome = self.attempt(case);
        let reached = self.requests() - before;
        let expected = &case.expected;
        let allowed = expected
            .requests
            .unwrap_or(usize::from(expected.reaches.is_some()));
        if reached != allowed as u64 {
            return Err(format!(
                "{reached} requests reached backends, not {allowed}; {outcome:?}"
            ));
        }
        match (&expected.reaches, outcome) {
            (None, Err(_)) if expected.refused.is_empty() => Ok(()),
            (None, Ok(text)) => refusal_fits(&text, &expected.refused),
            // A handshake that is refused is a refusal for being misdirected.
            (None, Err(_)) if case.sni.is_none() => Ok(()),
            (Some(name), Ok(text)) => answer_fits(&text, name, case),
            (_, Err(error)) => Err(format!("no answer: {error}")),
        }
    }
}

fn refusal_fits(text: &str, labels: &[String]) -> Result<(), String> {
    let given = Refusal::ALL
        .iter()
        .find(|reason| text.contains(&format!(" {}\n", reason.code())));
    let Some(given) = given else {
        return if labels.is_empty() && !text.contains("\"backend\"") {
            Ok(())
        } else {
            Err(format!("not refused by us: {text}"))
        };
    };
    let fits = labels.is_empty() || labels.iter().any(|label| label == given.label());
    if fits {
        Ok(())
    } else {
        Err(format!("refused as {given}, not {labels:?}"))
    }
}

fn answer_fits(text: &str, backend: &str, case: &Case) -> Result<(), String> {
    let seen: Value =
        serde_json::from_str(text).map_err(|_| format!("not from a backend: {text}"))?;
    let wrong = |what: String| Err(format!("{what}; the backend saw {seen}"));
    if seen["backend"] != *backend {
        return wrong(format!("not {backend}"));
    }
    if let Some(target) = &case.expected.target
        && seen["target"] != **target
    {
        return wrong(format!("not target {target}"));
    }
    let headers: Vec<(String, String)> =
        serde_json::from_value(seen["headers"].clone()).expect("pairs");
    for (name, value) in &case.expected.headers {
        let values: Vec<_> = headers
            .iter()
            .filter(|(n, _)| n == name)
            .map(|(_, v)| v)
            .collect();
        if values != [value] {
            return wrong(format!("{name} is {values:?}, not {value:?}"));
        }
    }
    let alike = |name: &str| name.replace('_', "-");
    let trailers: Vec<(String, String)> =
        serde_json::from_value(seen["trailers"].clone()).unwrap_or_default();
    for name in &case.expected.no_headers {
        if headers
            .iter()
            .chain(&trailers)
            .any(|(n, _)| alike(n) == alike(name))
        {
            return wrong(format!("{name} is there"));
        }
    }
    Ok(())
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn http1(stream: &mut Stream, bytes: &[u8]) -> io::Result<String> {
    stream.write_all(bytes)?;
    stream.flush()?;
    let answer = read_answer(stream, "GET")?;
    stream.sock.set_read_timeout(Some(SILENCE))?;
    let mut rest = Vec::new();
    // Time-out, end or error: either way nothing more comes.
    stream.read_to_end(&mut rest).unwrap_or_default();
    Ok(answer.text())
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// One request on stream 1 (RFC 9113), fields as literals without indexing (RFC 7541).
fn http2(
    stream: &mut Stream,
    headers: &Fields,
    body: Option<&[u8]>,
    trailers: &Fields,
) -> io::Result<String> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    let last = |is_last: bool| if is_last { END_STREAM } else { 0 };
    bytes.extend(frame(
        HEADERS,
        END_HEADERS | last(body.is_none() && trailers.is_empty()),
        1,
        &literals(headers),
    ));
    if let Some(body) = body {
        bytes.extend(frame(DATA, last(trailers.is_empty()), 1, body));
    }
    if !trailers.is_empty() {
        bytes.extend(frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            1,
            &literals(trailers),
        ));
    }
    stream.write_all(&bytes)?;
    stream.flush()?;
    let mut text = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        let (kind, flags) = (head[3], head[4]);
        match kind {
            DATA => text.extend(payload),
            SETTINGS if flags & ACK == 0 => {
                stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?;
                stream.flush()?;
            }
            RST_STREAM if text.is_empty() => return Err(io::ErrorKind::ConnectionReset.into()),
            GOAWAY if payload.get(4..8).is_some_and(|code| code != [0; 4]) => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a small frame")
        .to_be_bytes();
    let mut bytes = vec![
        length[1], length[2], length[3], kind, flags, 0, 0, 0, stream,
    ];
    bytes.extend(payload);
    bytes
}

fn literals(fields: &Fields) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(&mut block, text.len());
            block.extend(text);
        }
    }
    block
}

/// An integer with a prefix of 7 bits (RFC 7541 section 5.1).
fn integer(block: &mut Vec<u8>, value: usize) {
    let Some(mut rest) = value.checked_sub(127) else {
        block.push(u8::try_from(value).expect("below 127"));
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).expect("7 bits") | 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).expect("7 bits"));
}

/// Runs kinds side by side; each has a world of its own, so that what reaches backends is its own.
fn each_kind(run: impl Fn(&Kind) -> Vec<String> + Sync) -> Vec<String> {
    let kinds = Mutex::new(corpus().into_iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let Some(kind) = kinds.lock().expect("no poison").next() else {
                        break;
                    };
                    failures.lock().expect("no poison").extend(run(&kind));
                }
            });
        }
    });
    failures.into_inner().expect("no poison")
}

#[test]
fn no_attempt_gets_around_a_route() {
    let failures = each_kind(|kind| {
        let world = World::start(Defences::all());
        let cases = kind.cases.iter();
        cases
            .filter_map(|case| {
                world
                    .check(case)
                    .err()
                    .map(|error| format!("{}: {error}", case.name))
            })
            .collect()
    });
    assert!(
        failures.is_empty(),
        "{} cases:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn every_kind_has_a_case_that_fails_without_its_defence() {
    let toothless = each_kind(|kind| {
        let defences = Defences::without(&kind.defence).expect("a known defence");
        let world = World::start(defences);
        let fails = kind.cases.iter().any(|case| world.check(case).is_err());
        if fails {
            Vec::new()
        } else {
            vec![format!("{}: no case needs {}", kind.name, kind.defence)]
        }
    });
    assert!(toothless.is_empty(), "{}", toothless.join("\n"));
}
