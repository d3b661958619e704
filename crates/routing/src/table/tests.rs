//! Look-ups against the oracle, ambiguous paths against backends with random habits, handshakes.

use std::{collections::BTreeMap, net::IpAddr};

use model::{
    id::{HttpResponseId, RouteId},
    module::{HeaderChanges, IpRules, Modules},
    place::MatchType,
};
use proptest::prelude::*;
use testkit::oracle;

use super::*;

fn set() -> Arc<CompiledSet> {
    Arc::new(CompiledSet {
        chain: Chain::compile(&Modules::default(), &[]).expect("no modules"),
        backend: Arc::new(BackendEntry {
            id: BackendId::HttpResponse(HttpResponseId::derived(&["x"])),
            kind: BackendKind::HttpResponse {
                status: 200,
                headers: BTreeMap::new(),
                body: String::new(),
            },
            service: None,
            endpoints: Vec::new(),
        }),
    })
}

fn edge(
    name: &str,
    demands: EdgeDemands,
    places: impl IntoIterator<Item = Match>,
) -> Arc<EdgeEntry> {
    let set = set();
    let routes = places
        .into_iter()
        .map(|place| RouteEntry {
            id: RouteId::derived(&[name, &place.to_string()]),
            place,
            generation: 1,
            outcome: RouteOutcome::Serve(Arc::clone(&set)),
        })
        .collect();
    Arc::new(EdgeEntry::new(
        EdgeId::derived(&[name]),
        demands,
        None,
        1,
        routes,
    ))
}

fn pattern(text: &str) -> HostPattern {
    HostPattern::parse(text).expect("a pattern")
}

fn prefix(path: &str) -> Match {
    Match::new(MatchType::ElementPrefix, path)
}

fn selected(edge: &EdgeEntry, path: &str) -> Option<String> {
    match edge.select(path) {
        Selection::Route(route) => Some(route.place.to_string()),
        Selection::Nothing => None,
        Selection::Ambiguous => Some(String::from("ambiguous")),
    }
}

#[test]
fn an_exact_host_comes_before_its_wildcard_and_never_falls_back_to_it() {
    let wild = edge("wild", EdgeDemands::default(), [prefix("/")]);
    let narrow = edge("narrow", EdgeDemands::default(), [prefix("/a")]);
    let table = Table::new([(pattern("*.b.c"), wild), (pattern("a.b.c"), narrow)]);
    let of = |host: &str| {
        table
            .host(host)
            .map(|entry| entry.pattern.as_str().to_owned())
    };
    assert_eq!(of("a.b.c").as_deref(), Some("a.b.c"));
    assert_eq!(of("x.b.c").as_deref(), Some("*.b.c"));
    for host in ["b.c", "x.y.b.c", "c", "", "*.b.c.", "a.b.c.d"] {
        assert_eq!(of(host), None, "{host}");
    }
    let edge = &table.host("a.b.c").expect("declared").edge;
    assert_eq!(
        edge.select("/x").route().map(|route| &route.place),
        Err(Refusal::NoRoute)
    );
}

#[test]
fn two_claims_on_one_host_or_match_refuse() {
    let twice = [pattern("a.b"), pattern("a.b")]
        .map(|host| (host, edge("e", EdgeDemands::default(), [prefix("/")])));
    let table = Table::new(twice);
    let entry = table.host("a.b").expect("known");
    assert_eq!(
        entry.edge.select("/").route().map(|route| route.generation),
        Err(Refusal::NoRoute)
    );

    let doubled = edge(
        "e",
        EdgeDemands::default(),
        [prefix("/a"), prefix("/a"), prefix("/")],
    );
    let facts = Facts::new(IpAddr::from([1, 2, 3, 4]), "GET", "a.b", "/a");
    let route = doubled.select("/a").route().expect("one stays");
    assert_eq!(
        route
            .admit(&facts)
            .map(|admitted| admitted.route().generation),
        Err(Refusal::NotEnforceable)
    );
    assert!(
        doubled
            .select("/x")
            .route()
            .expect("untouched")
            .admit(&facts)
            .is_ok()
    );
}

#[test]
fn a_path_that_backends_read_as_that_of_another_route_is_refused() {
    let edge = edge(
        "e",
        EdgeDemands::default(),
        [
            prefix("/"),
            prefix("/admin"),
            prefix("/me@home"),
            prefix("/a"),
        ],
    );
    for path in [
        "/admin;x",
        "/admin;x/y",
        "/x/..;/admin",
        "/x/..;a=b/admin/y",
        "/;/admin",
        "/%3Bx/admin",
        "/admin%3Bx",
        "/x%252F..%252Fadmin",
        "/%2561dmin",
        "/%252561dmin",
        "/x/%252e%252e/admin",
        "/x%255C..%255Cadmin",
        "/%25u0061dmin",
        "/x%25C0%25AF..%25C0%25AFadmin",
        "/%EF%BD%81dmin",
        "/%25EF%25BD%2581dmin",
        "/admin%2500.png",
        "/me%40home",
        "/x;%252F..%252F..%252Fadmin",
        "/a;%252Fb/%252e%252e/%252e%252e/x",
    ] {
        assert_eq!(
            selected(&edge, path).as_deref(),
            Some("ambiguous"),
            "{path}"
        );
    }
    for path in [
        "/x;y",
        "/x;jsessionid=1/z",
        "/100%25",
        "/a%20b",
        "/%C3%A4",
        "/x%40y",
        "/x%2520y",
        "/x/%252e%252e/y",
    ] {
        assert_eq!(selected(&edge, path).as_deref(), Some("prefix /"), "{path}");
    }
    assert_eq!(
        selected(&edge, "/admin/x;y").as_deref(),
        Some("prefix /admin")
    );
    let deep = format!("/x%{}61", "25".repeat(99));
    assert_eq!(
        selected(&edge, &deep).as_deref(),
        Some("ambiguous"),
        "too deep to follow"
    );
}

#[test]
fn a_connection_serves_other_hosts_only_under_equal_demands() {
    let strict = EdgeDemands {
        tls_minimum: Some(TlsVersion::V1_3),
        mutual_tls: None,
    };
    let authorities: BTreeSet<String> = [String::from("CA")].into();
    let mutual = EdgeDemands {
        tls_minimum: None,
        mutual_tls: Some(authorities.clone()),
    };
    let table = Table::new([
        (
            pattern("a.x"),
            edge("a", EdgeDemands::default(), [prefix("/")]),
        ),
        (
            pattern("b.x"),
            edge("b", EdgeDemands::default(), [prefix("/")]),
        ),
        (pattern("strict.x"), edge("s", strict, [prefix("/")])),
        (pattern("mutual.x"), edge("m", mutual, [prefix("/")])),
    ]);
    let ask = |name: Option<&str>, version, authorities: Option<&BTreeSet<String>>, host: &str| {
        let handshake = Handshake {
            server_name: name.map(str::to_owned),
            version,
            authorities: authorities.map(|all| Arc::new(all.clone())),
        };
        table.check_handshake(&handshake, host, &table.host(host).expect("declared").edge)
    };
    use TlsVersion::{V1_2, V1_3};
    assert_eq!(ask(Some("a.x"), V1_2, None, "a.x"), Ok(()));
    assert_eq!(ask(Some("a.x"), V1_2, None, "b.x"), Ok(()));
    assert_eq!(ask(None, V1_2, None, "b.x"), Ok(()));
    assert_eq!(ask(Some("unknown.x"), V1_2, None, "b.x"), Ok(()));
    assert_eq!(
        ask(Some("a.x"), V1_3, None, "strict.x"),
        Err(Refusal::Misdirected)
    );
    assert_eq!(ask(None, V1_3, None, "strict.x"), Err(Refusal::Misdirected));
    assert_eq!(
        ask(Some("strict.x"), V1_3, None, "a.x"),
        Err(Refusal::Misdirected)
    );
    assert_eq!(ask(Some("strict.x"), V1_3, None, "strict.x"), Ok(()));
    assert_eq!(
        ask(Some("strict.x"), V1_2, None, "strict.x"),
        Err(Refusal::HandshakeOutdated)
    );
    assert_eq!(
        ask(Some("mutual.x"), V1_3, None, "mutual.x"),
        Err(Refusal::HandshakeOutdated)
    );
    assert_eq!(
        ask(Some("mutual.x"), V1_3, Some(&authorities), "mutual.x"),
        Ok(())
    );
    let others = [String::from("other CA")].into();
    assert_eq!(
        ask(Some("mutual.x"), V1_3, Some(&others), "mutual.x"),
        Err(Refusal::HandshakeOutdated)
    );
}

#[test]
fn reserved_paths_and_refusing_tables_are_data() {
    let table = Table::refusing(Refusal::StateUnreadable);
    assert_eq!(table.refuses_everything(), Some(Refusal::StateUnreadable));
    assert!(table.host("a.b").is_none() && !table.is_reserved("/"));
    let reserved = Table::default().with_reserved_prefix(Some(prefix("/ngrok")));
    assert!(reserved.is_reserved("/ngrok/login") && !reserved.is_reserved("/ngroks"));
}

/// Short paths over few names, so that prefixes of each other, of bytes and of elements, abound.
fn paths() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("a"),
        Just("b"),
        Just("ab"),
        Just("a.b"),
        Just("aa"),
        Just("%C3%A4"),
        Just("-")
    ];
    (prop::collection::vec(name, 0..5), any::<bool>()).prop_map(|(names, slash)| {
        let end = if slash || names.is_empty() { "/" } else { "" };
        names
            .iter()
            .fold(String::new(), |path, name| path + "/" + name)
            + end
    })
}

fn places() -> impl Strategy<Value = Match> {
    let kind = prop_oneof![
        Just(MatchType::Exact),
        Just(MatchType::ElementPrefix),
        Just(MatchType::StringPrefix)
    ];
    (kind, paths(), 0..3_usize).prop_map(|(kind, path, cut)| {
        // A byte prefix may end within a name.
        let end = if kind == MatchType::StringPrefix {
            path.len().saturating_sub(cut).max(1)
        } else {
            path.len()
        };
        Match::new(kind, &path[..end])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn selection_is_what_a_linear_scan_of_the_kubernetes_text_finds(
        places in prop::collection::btree_set(places(), 0..24),
        asked in prop::collection::vec(paths(), 1..16),
    ) {
        let edge = edge("e", EdgeDemands::default(), places.iter().cloned());
        for path in asked.iter().chain(places.iter().map(|place| &place.path)) {
            let expected = oracle::route(&places, path);
            prop_assert_eq!(edge.index.find(path).map(|at| &edge.routes[at].place), expected, "{}", path);
            let by_rank = edge.routes().iter().map(|route| &route.place).find(|place| place.matches(path));
            prop_assert_eq!(by_rank, expected, "{}", path);
        }
    }

    #[test]
    fn hosts_are_found_as_the_kubernetes_text_says(
        names in prop::collection::btree_set("(\\*\\.)?[ab](\\.[ab]){1,3}", 0..12),
        asked in prop::collection::vec("[ab](\\.[ab]){0,4}", 1..12),
    ) {
        let patterns: Vec<HostPattern> = names.iter().filter_map(|name| HostPattern::parse(name).ok()).collect();
        let one = edge("e", EdgeDemands::default(), []);
        let table = Table::new(patterns.iter().map(|pattern| (pattern.clone(), Arc::clone(&one))));
        for host in &asked {
            prop_assert_eq!(table.host(host).map(|entry| &entry.pattern), oracle::host(&patterns, host), "{}", host);
        }
    }
}

#[test]
fn a_chain_that_passes_is_the_only_way_to_be_admitted() {
    let edits = HeaderChanges {
        enabled: true,
        add: BTreeMap::new(),
        remove: BTreeSet::new(),
    };
    let modules = Modules {
        request_headers: Some(edits),
        ..Modules::default()
    };
    let chain = Chain::compile(&modules, &[IpRules::default()]).expect("enforced");
    let set = Arc::new(CompiledSet {
        chain,
        backend: Arc::clone(&set().backend),
    });
    let route = |outcome| RouteEntry {
        id: RouteId::derived(&["r"]),
        place: prefix("/"),
        generation: 1,
        outcome,
    };
    let facts = Facts::new(IpAddr::from([1, 2, 3, 4]), "GET", "a.b", "/");
    let refused = |route: RouteEntry| {
        route
            .admit(&facts)
            .map(|admitted| Arc::clone(admitted.set()))
            .err()
    };
    assert_eq!(
        refused(route(RouteOutcome::Serve(set))),
        Some(Refusal::AddressRefused)
    );
    assert_eq!(
        refused(route(RouteOutcome::Refuse(Refusal::RouteClosed))),
        Some(Refusal::RouteClosed)
    );
}

/// What a backend may do with a path before it looks at it.
#[derive(Clone, Copy, Debug)]
enum Habit {
    Decode,
    StripParameters,
    BackslashIsSlash,
    MergeSlashes,
    ResolveDots,
}

fn backend_reads(path: &str, habits: &[Habit]) -> String {
    let mut text: Vec<char> = path.chars().collect();
    let mut decoded = false;
    for habit in habits {
        let now: String = text.iter().collect();
        text = match habit {
            Habit::Decode => {
                decoded = true;
                decode_latin(&now)
            }
            Habit::StripParameters => {
                let names: Vec<&str> = now
                    .split('/')
                    .map(|name| name.split(';').next().unwrap_or(""))
                    .collect();
                names.join("/").chars().collect()
            }
            Habit::BackslashIsSlash => now.replace('\\', "/").chars().collect(),
            Habit::MergeSlashes => {
                let mut merged = now.chars().collect::<Vec<_>>();
                merged.dedup_by(|right, left| *right == '/' && *left == '/');
                merged
            }
            Habit::ResolveDots => {
                let mut names: Vec<&str> = Vec::new();
                let all: Vec<&str> = now.split('/').skip(1).collect();
                for (at, name) in all.iter().enumerate() {
                    let is_dots = matches!(*name, "." | "..");
                    if *name == ".." {
                        names.pop();
                    } else if !is_dots {
                        names.push(name);
                    }
                    if is_dots && at + 1 == all.len() {
                        names.push("");
                    }
                }
                format!("/{}", names.join("/")).chars().collect()
            }
        };
    }
    // Back to the spelling of declared paths.
    let escape = |byte: char| match byte {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' | '/' => String::from(byte),
        byte if "!$&'()*+,;=:@".contains(byte) => String::from(byte),
        '%' if !decoded => String::from(byte),
        byte => format!("%{:02X}", u32::from(byte)),
    };
    text.into_iter().map(escape).collect()
}

fn decode_latin(text: &str) -> Vec<char> {
    let mut decoded = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let escape = rest
            .get(1..3)
            .filter(|_| first == '%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let length = if escape.is_some() {
            3
        } else {
            first.len_utf8()
        };
        decoded.push(escape.map_or(first, char::from));
        rest = &rest[length..];
    }
    decoded
}

fn tricky_paths() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "/",
        "a",
        "b",
        ";x",
        ";",
        "%3B",
        "%253b",
        "%2561",
        "%252561",
        "%252e",
        "%252E%252e",
        "..",
        "%252F",
        "%255C",
        "%40",
        "@",
        "..;",
        "%25",
        "%20",
    ]);
    prop::collection::vec(piece, 1..9).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    use Habit::{BackslashIsSlash, Decode, MergeSlashes, ResolveDots, StripParameters};
    let habit = prop::sample::select(vec![
        Decode,
        StripParameters,
        BackslashIsSlash,
        MergeSlashes,
        ResolveDots,
    ]);
    prop::collection::vec(habit, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    /// R16, the core of it: whatever a backend makes of the bytes that it gets, they were judged
    /// as what it reads, or refused.
    #[test]
    fn no_habit_of_a_backend_leads_past_the_route_that_judged(path in tricky_paths(), habits in habits()) {
        let declared = ["/", "/a", "/a/b", "/b/a", "/a@b", "/@"];
        let mut places: Vec<Match> = declared.iter().map(|path| prefix(path)).collect();
        places.push(Match::new(MatchType::Exact, "/b"));
        places.push(Match::new(MatchType::StringPrefix, "/ba"));
        let edge = edge("e", EdgeDemands::default(), places.iter().cloned());
        if let Ok(normal) = crate::path::normalise(&path)
            && let Selection::Route(route) = edge.select(&normal)
        {
            let read = backend_reads(&normal, &habits);
            prop_assert_eq!(oracle::route(&places, &read), Some(&route.place), "{} read as {}", normal, read);
        }
    }
}
