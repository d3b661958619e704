//! The main job, end to end: manifests in, fail-closed routes out, through real sockets.

mod common;

use std::{
    io::{Read as _, Write as _},
    net::IpAddr,
    time::Duration,
};

use common::{Place, ingress, module_set, policy, service, service_object};
use model::status::RouteState;
use testkit::{backend::Backend, process::Portcullis, wait::until};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(10);

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The codes of a route's reasons.
fn codes(portcullis: &Portcullis, path: &str) -> Vec<String> {
    let status = portcullis.try_status().expect("the status can be read");
    let route = status
        .routes
        .into_iter()
        .find(|r| r.path == path)
        .expect("the route is there");
    route.reasons.into_iter().map(|r| r.code).collect()
}

#[test]
fn the_sample_is_closed_and_says_all_that_is_missing() {
    let place = Place::new();
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/game-2048/manifest.yml"
    );
    place.write(
        "manifest.yml",
        &std::fs::read_to_string(sample).expect("the sample is there"),
    );
    let portcullis = place.up(&[]);
    let host = "test-ingress-12345.ngrok.app";
    let route = portcullis.wait_route(host, "/", RouteState::Closed);
    let said = format!("{:#?}", route.reasons);
    for word in [
        "client-secret",
        "Secret",
        "clientId",
        "not enforced by this edge yet",
    ] {
        assert!(said.contains(word), "{word} in {said}");
    }
    let answer = portcullis
        .client()
        .get(host, "/")
        .expect("the edge answers");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("ngrok-error-code"), Some("ERR_NGROK_6015"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("retry-after").is_some());
    let about: Vec<_> = portcullis
        .events()
        .into_iter()
        .filter(|e| e["host"] == host)
        .collect();
    assert_eq!(about.len(), 1, "one event: {about:#?}");
    let writes = portcullis.metric("portcullis_edge_writes_total");
    std::thread::park_timeout(Duration::from_secs(3));
    assert_eq!(
        portcullis.metric("portcullis_edge_writes_total"),
        writes,
        "nothing is retried"
    );
}

#[test]
fn a_route_opens_within_a_second_of_its_missing_policy() {
    let web = Backend::start("web");
    let place = Place::new();
    place.write(
        "web.yaml",
        &(service_object("web")
            + &module_set("office", &["office"])
            + &ingress("web", HOST, "/", "office", "web")),
    );
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let route = portcullis.wait_route(HOST, "/", RouteState::Closed);
    assert!(
        format!("{:?}", route.reasons).contains("office"),
        "{:?}",
        route.reasons
    );
    let client = portcullis.client();
    assert_eq!(client.get(HOST, "/").expect("it answers").status, 503);
    place.write("policy.yaml", &policy("office", &["127.0.0.1/32"]));
    let begun = std::time::Instant::now();
    until("the route is open", LIMIT, || {
        match client.get(HOST, "/a?b=c") {
            Ok(answer) if answer.status == 200 => Ok(answer),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let answer = client.get(HOST, "/a?b=c").expect("it answers");
    assert_eq!(answer.json()["target"], "/a?b=c");
    let headers = answer.json()["headers"].to_string();
    assert!(headers.contains(r#"["x-set","office"]"#), "{headers}");
    assert!(
        headers.contains(r#"["x-forwarded-for","127.0.0.1"]"#),
        "{headers}"
    );
    let denied = client
        .from_address(address("127.0.0.2"))
        .get(HOST, "/")
        .expect("it answers");
    assert_eq!(
        (denied.status, denied.header("ngrok-error-code")),
        (403, Some("ERR_NGROK_3203"))
    );
}

#[test]
fn an_open_route_is_held_when_its_policy_turns_invalid_and_closes_when_it_is_lost() {
    let web = Backend::start("web");
    let place = Place::new();
    let base = service_object("web")
        + &module_set("office", &["office"])
        + &ingress("web", HOST, "/", "office", "web");
    place.write("web.yaml", &base);
    place.write("policy.yaml", &policy("office", &["127.0.0.1/32"]));
    let portcullis = place.up(&[
        "--service",
        &service("web", web.address),
        "--lost-grace",
        "2s",
    ]);
    let open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let generation = open.serving.expect("it serves").generation;
    // A bad CIDR: held, and serving what it served.
    place.write("policy.yaml", &policy("office", &["127.0.0.300/32"]));
    let held = portcullis.wait_route(HOST, "/", RouteState::Held);
    assert_eq!(held.serving.map(|g| g.generation), Some(generation));
    assert!(
        held.wanted.is_some_and(|g| g.generation > generation),
        "{held:?}"
    );
    assert!(held.since.is_some() && !held.reasons.is_empty(), "{held:?}");
    let client = portcullis.client();
    assert_eq!(client.get(HOST, "/").expect("it answers").status, 200);
    let stranger = client.from_address(address("127.0.0.2"));
    assert_eq!(stranger.get(HOST, "/").expect("it answers").status, 403);
    // Mended, then a second policy that does not exist: held again.
    place.write("policy.yaml", &policy("office", &["127.0.0.1/32"]));
    let _mended = portcullis.wait_route(HOST, "/", RouteState::Open);
    place.write("web.yaml", &base.replace("[office]", "[office, home]"));
    let _held = portcullis.wait_route(HOST, "/", RouteState::Held);
    place.write("web.yaml", &base);
    let before = portcullis.wait_route(HOST, "/", RouteState::Open);
    // The object is deleted while it is served: it serves on for the grace, then closes.
    place.remove("policy.yaml");
    let lost = portcullis.wait_for("it is lost", HOST, "/", |route| {
        route.state == RouteState::Held && route.reasons.iter().any(|r| r.code == "lost")
    });
    assert_eq!(
        lost.wanted, before.wanted,
        "losing an object changes no declaration"
    );
    let _closed = portcullis.wait_route(HOST, "/", RouteState::Closed);
    assert_eq!(client.get(HOST, "/").expect("it answers").status, 503);
}

#[test]
fn with_close_an_invalid_declaration_closes_at_once() {
    let web = Backend::start("web");
    let place = Place::new();
    place.write(
        "web.yaml",
        &(service_object("web")
            + &module_set("office", &["office"])
            + &ingress("web", HOST, "/", "office", "web")),
    );
    place.write("policy.yaml", &policy("office", &["127.0.0.1/32"]));
    let portcullis = place.up(&[
        "--service",
        &service("web", web.address),
        "--on-invalid",
        "close",
    ]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    place.write("policy.yaml", &policy("office", &["127.0.0.300/32"]));
    let _closed = portcullis.wait_route(HOST, "/", RouteState::Closed);
    assert_eq!(
        portcullis
            .client()
            .get(HOST, "/")
            .expect("it answers")
            .status,
        503
    );
}

#[test]
fn a_held_route_does_not_open_to_the_wider_range_of_a_shared_policy() {
    let web = Backend::start("web");
    let place = Place::new();
    let sets = module_set("one", &["shared"]) + &module_set("two", &["shared"]);
    let routes =
        ingress("one", HOST, "/one", "one", "web") + &ingress("two", HOST, "/two", "two", "web");
    place.write(
        "all.yaml",
        &(service_object("web") + &sets + &routes + &policy("shared", &["127.0.0.1/32"])),
    );
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let _one = portcullis.wait_route(HOST, "/one", RouteState::Open);
    let _two = portcullis.wait_route(HOST, "/two", RouteState::Open);
    let sets = module_set("one", &["shared"]) + &module_set("two", &["shared", "missing"]);
    place.write(
        "all.yaml",
        &(service_object("web") + &sets + &routes + &policy("shared", &["127.0.0.0/8"])),
    );
    let _held = portcullis.wait_route(HOST, "/two", RouteState::Held);
    let stranger = portcullis.client().from_address(address("127.0.0.2"));
    until(
        "the route that is valid is wider",
        LIMIT,
        || match stranger.get(HOST, "/one") {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("{other:?}")),
        },
    );
    assert_eq!(stranger.get(HOST, "/two").expect("it answers").status, 403);
    assert_eq!(
        portcullis
            .client()
            .get(HOST, "/two")
            .expect("it answers")
            .status,
        200
    );
}

#[test]
fn a_closed_path_and_a_removed_path_never_fall_to_their_neighbour() {
    let (web, admin) = (Backend::start("web"), Backend::start("admin"));
    let place = Place::new();
    let base = service_object("web")
        + &service_object("admin")
        + &module_set("plain", &[])
        + &ingress("web", HOST, "/", "plain", "web");
    let guarded =
        module_set("admin", &["admins"]) + &ingress("admin", HOST, "/admin", "admin", "admin");
    place.write("web.yaml", &base);
    place.write("admin.yaml", &guarded);
    let services = [service("web", web.address), service("admin", admin.address)];
    let portcullis = place.up(&[
        "--service",
        &services[0],
        "--service",
        &services[1],
        "--tombstone",
        "3s",
    ]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let _closed = portcullis.wait_route(HOST, "/admin", RouteState::Closed);
    let client = portcullis.client();
    for path in [
        "/admin",
        "/admin/",
        "/admin/x",
        "/%61dmin",
        "//admin",
        "/a/../admin",
    ] {
        assert_eq!(
            client.get(HOST, path).expect("it answers").status,
            503,
            "{path}"
        );
    }
    assert_eq!(
        client
            .get(HOST, "/administrator")
            .expect("it answers")
            .status,
        200
    );
    // It opens for those who may, is removed, and refuses as a tombstone before it uncovers `/`.
    place.write("policy.yaml", &policy("admins", &["127.0.0.1/32"]));
    let _open = portcullis.wait_route(HOST, "/admin", RouteState::Open);
    place.remove("admin.yaml");
    let removing = portcullis.wait_route(HOST, "/admin", RouteState::Removing);
    assert_eq!((removing.wanted, removing.serving), (None, None));
    assert_eq!(client.get(HOST, "/admin").expect("it answers").status, 503);
    // Re-created, as a tool's replace does: back at once, and never through `/` meanwhile.
    place.write("admin.yaml", &guarded);
    let _open = portcullis.wait_route(HOST, "/admin", RouteState::Open);
    assert!(web.seen().iter().all(
        |r| !r["target"].as_str().unwrap_or("").starts_with("/admin/") && r["target"] != "/admin"
    ));
    // Removed for good while `/` is invalid: closed, and not deleted before `/` is as declared.
    let broken = base.replace("plain\"", "plain, nowhere\"");
    place.write("web.yaml", &broken);
    let _held = portcullis.wait_route(HOST, "/", RouteState::Held);
    place.remove("admin.yaml");
    let removing = portcullis.wait_for("it waits for /", HOST, "/admin", |r| {
        r.state == RouteState::Removing
            && r.reasons
                .iter()
                .any(|reason| reason.code == "waits-for-broader")
    });
    assert_eq!(removing.serving, None);
    assert_eq!(client.get(HOST, "/admin").expect("it answers").status, 503);
    place.write("web.yaml", &base);
    until("the tombstone is gone", LIMIT, || {
        let status = portcullis.try_status()?;
        if status.routes.iter().any(|r| r.path == "/admin") {
            Err(format!("{status:?}"))
        } else {
            Ok(())
        }
    });
    assert_eq!(
        client.get(HOST, "/admin").expect("it answers").json()["backend"],
        "web"
    );
}

#[test]
fn mistakes_close_and_say_why() {
    let web = Backend::start("web");
    let cases = [
        (
            "a misspelt module",
            module_set("set", &[]).replace("headers:", "haeders:"),
            ingress("web", HOST, "/", "set", "web"),
            "headers",
        ),
        (
            "an unknown module set",
            String::new(),
            ingress("web", HOST, "/", "nowhere", "web"),
            "nowhere",
        ),
        (
            "a misspelt annotation",
            module_set("set", &[]),
            ingress("web", HOST, "/", "set", "web").replace("/modules", "/module"),
            "modules",
        ),
    ];
    for (what, sets, route, word) in cases {
        let place = Place::new();
        place.write("a.yaml", &(service_object("web") + &sets + &route));
        place.write(
            "b.yaml",
            &ingress("open", "open.example.com", "/", "", "web"),
        );
        let portcullis = place.up(&["--service", &service("web", web.address)]);
        let closed = portcullis.wait_route(HOST, "/", RouteState::Closed);
        let said = format!("{:?}", closed.reasons);
        assert!(said.contains(word), "{what}: {word} in {said}");
        assert!(
            closed.reasons.iter().all(|r| r.file.is_some()),
            "{what}: {said}"
        );
        let _open = portcullis.wait_route("open.example.com", "/", RouteState::Open);
    }
}

#[test]
fn a_file_that_is_empty_or_half_written_changes_nothing() {
    let web = Backend::start("web");
    let place = Place::new();
    let whole =
        service_object("web") + &module_set("set", &[]) + &ingress("web", HOST, "/", "set", "web");
    place.write("web.yaml", &whole);
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let open = portcullis.wait_route(HOST, "/", RouteState::Open);
    for text in ["", &whole[..whole.len() - 40]] {
        place.write("web.yaml", text);
        let held = portcullis.wait_route(HOST, "/", RouteState::Held);
        assert_eq!(held.serving, open.serving);
        assert_eq!(
            portcullis
                .client()
                .get(HOST, "/")
                .expect("it answers")
                .status,
            200
        );
        place.write("web.yaml", &whole);
        let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    }
}

#[test]
fn another_namespace_does_not_get_an_owned_host() {
    let (web, other) = (Backend::start("web"), Backend::start("other"));
    let place = Place::new();
    place.write(
        "a.yaml",
        &(service_object("web") + &ingress("web", HOST, "/", "", "web")),
    );
    let services = [
        service("web", web.address),
        format!("hostile/other:80={}", other.address),
    ];
    let portcullis = place.up(&["--service", &services[0], "--service", &services[1]]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let claim = service_object("other")
        .replace("{name: other}", "{name: other, namespace: hostile}")
        + &ingress("claim", HOST, "/admin", "", "other")
            .replace("  name: claim", "  name: claim\n  namespace: hostile");
    // Named so that it would be read first.
    place.write("0.yaml", &claim);
    until("the newcomer is told", LIMIT, || {
        let status = portcullis.try_status()?;
        let told = status
            .diagnostics
            .iter()
            .any(|d| d.object.contains("hostile/claim"));
        if told {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    });
    let status = portcullis.try_status().expect("the status can be read");
    assert_eq!(status.routes.len(), 1, "{status:?}");
    assert_eq!(
        portcullis
            .client()
            .get(HOST, "/admin")
            .expect("it answers")
            .json()["backend"],
        "web"
    );
}

/// Makes a thing through the API, with the key that writes.
fn made(place: &Place, portcullis: &Portcullis, path: &str, body: &str) -> serde_json::Value {
    let key = std::fs::read_to_string(place.data().join("api-key")).expect("there is a key");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         ngrok-version: 2\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        key.trim(),
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(portcullis.address("api")).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let at = answer.find("\r\n\r\n").expect("a body");
    serde_json::from_str(&answer[at..]).expect("it is JSON")
}

#[test]
fn what_others_made_through_the_api_is_never_touched() {
    let place = Place::new();
    let portcullis = place.up(&[]);
    let domain = format!("{{\"domain\": \"{HOST}\"}}");
    let _domain = made(&place, &portcullis, "/reserved_domains", &domain);
    let edge = format!("{{\"hostports\": [\"{HOST}:443\"], \"metadata\": \"mine\"}}");
    let edge = made(&place, &portcullis, "/edges/https", &edge);
    let id = edge["id"].as_str().expect("an id").to_owned();
    let api = portcullis.address("api");
    let own = || place.state(api).expect("the state can be read")["edges"][&id].clone();
    let before = own();
    assert!(before.is_object(), "{edge}");
    let declared = service_object("web") + &ingress("web", HOST, "/", "", "web");
    place.write("web.yaml", &declared);
    let refused = portcullis.wait_route(HOST, "/", RouteState::Closed);
    assert!(
        refused.reasons.iter().any(|r| r.code == "host-held"),
        "{refused:#?}"
    );
    place.remove("web.yaml");
    until("it is gone from the status", LIMIT, || {
        match portcullis.try_status()?.routes.len() {
            0 => Ok(()),
            count => Err(count.to_string()),
        }
    });
    assert_eq!(own(), before);
}

#[test]
fn at_rest_nothing_is_written_and_nothing_is_said() {
    let web = Backend::start("web");
    let place = Place::new();
    place.write(
        "web.yaml",
        &(service_object("web")
            + &module_set("set", &["missing"])
            + &ingress("web", HOST, "/", "", "web")
            + &ingress("x", HOST, "/x", "set", "web")),
    );
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let _closed = portcullis.wait_route(HOST, "/x", RouteState::Closed);
    assert!(!codes(&portcullis, "/x").is_empty());
    let names = [
        "portcullis_edge_writes_total",
        "portcullis_edge_reads_total",
        "portcullis_events_total",
        "portcullis_status_writes_total",
    ];
    let figures = || names.map(|name| portcullis.metric(name));
    let (before, told) = (figures(), portcullis.events().len());
    // The point of this minute is that nothing happens in it.
    std::thread::park_timeout(Duration::from_secs(60));
    assert_eq!(figures(), before);
    assert_eq!(portcullis.events().len(), told);
}

#[test]
fn an_undeclared_host_is_refused_and_plain_http_redirects() {
    let web = Backend::start("web");
    let place = Place::new();
    place.write(
        "web.yaml",
        &(service_object("web") + &ingress("web", HOST, "/", "", "web")),
    );
    let portcullis = place.up(&[
        "--service",
        &service("web", web.address),
        "--public-port",
        "8443",
    ]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let refused = portcullis
        .client()
        .get("nobody.example.com", "/")
        .expect_err("no such host");
    assert!(
        format!("{refused:?}").contains("UnrecognisedName")
            || format!("{refused:?}").contains("UnrecognizedName"),
        "{refused:?}"
    );
    let http = portcullis.address("http");
    let redirect =
        testkit::client::plain_get(http, &format!("{HOST}:1234"), "/a?b", &[]).expect("it answers");
    assert!([301, 308].contains(&redirect.status), "{redirect:?}");
    assert_eq!(
        redirect.header("location"),
        Some("https://web.example.com:8443/a?b")
    );
    let unknown =
        testkit::client::plain_get(http, "nobody.example.com", "/", &[]).expect("it answers");
    assert_eq!(unknown.status, 404);
}

#[test]
fn the_quickstart_shows_what_its_comments_say() {
    let place = Place::new();
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/quickstart/quickstart.yaml"
    );
    let text = std::fs::read_to_string(example).expect("the example is there");
    place.write("quickstart.yaml", &text);
    let portcullis = place.up(&["--demo"]);
    let host = "game-2048.localhost";
    let _closed = portcullis.wait_route(host, "/vault", RouteState::Closed);
    let client = portcullis.client();
    for (path, status) in [
        ("/", 200),
        ("/local", 200),
        ("/office", 403),
        ("/vault/x", 503),
    ] {
        let answer = client.get(host, path).expect("the edge answers");
        assert_eq!(answer.status, status, "{path}");
    }
    place.write("vault.yaml", &policy("vault", &["127.0.0.0/8"]));
    let _open = portcullis.wait_route(host, "/vault", RouteState::Open);
    assert_eq!(client.get(host, "/vault").expect("it answers").status, 200);
}
