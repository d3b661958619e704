//! What programs and people may rely on: exit codes, keys, locks, the status document, events,
//! metrics, and that one broken object is one diagnostic.

mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use common::{PROGRAM, Place, ingress, module_set, policy, service, service_object};
use model::status::RouteState;
use serde_json::Value;
use testkit::{backend::Backend, client::plain_get, process::Portcullis, wait::until};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a command to its end, away from the user's own directories.
fn run(place: &Place, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env("XDG_DATA_HOME", place.data())
        .env_remove("PORTCULLIS_API_KEY")
        .output()
        .expect("the program runs")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ends by itself")
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8(both).expect("text")
}

/// The same as one line: messages are broken where the terminal ends.
fn flat(output: &Output) -> String {
    said(output).replace('\n', " ")
}

/// `check` of the manifests of a place.
fn check(place: &Place, more: &[&str]) -> Output {
    let manifests = place.manifests().display().to_string();
    run(
        place,
        &[&["check", "-f", manifests.as_str()], more].concat(),
    )
}

/// What another process is told that wants the same data directory.
fn second(place: &Place) -> Output {
    let (data, manifests) = (place.data(), place.manifests());
    let mut arguments = vec!["up", "-f"];
    let (data, manifests) = (data.display().to_string(), manifests.display().to_string());
    arguments.extend([manifests.as_str(), "--data-dir", data.as_str()]);
    for listener in ["--https", "--http", "--api", "--admin"] {
        arguments.extend([listener, "127.0.0.1:0"]);
    }
    run(place, &arguments)
}

#[test]
fn check_says_by_its_exit_code_whether_every_route_would_open() {
    let place = Place::new();
    let fine = service_object("web")
        + &policy("office", &["10.0.0.0/8"])
        + &module_set("office", &["office"])
        + &ingress("web", HOST, "/", "office", "web");
    place.write("web.yaml", &fine);
    // A Service without endpoints is a warning and leaves the exit code alone.
    let warned = check(&place, &[]);
    assert_eq!(code(&warned), 0, "{}", said(&warned));
    let line = said(&warned).lines().next().unwrap_or_default().to_owned();
    // FILE:LINE:COLUMN: error[CODE]: message
    let (place_of_it, rest) = line
        .split_once(": warning[no-ready-endpoints]: ")
        .expect("its form");
    let numbers: Vec<_> = place_of_it.rsplitn(3, ':').collect();
    assert!(numbers[2].ends_with("web.yaml"), "{line}");
    assert!(
        numbers[..2].iter().all(|n| n.parse::<u32>().is_ok()) && !rest.is_empty(),
        "{line}"
    );
    let silent = check(&place, &["--service", "default/web:80=127.0.0.1:3000"]);
    assert_eq!(code(&silent), 0);
    assert!(!said(&silent).contains("warning["), "{}", said(&silent));
    // What only an edge can tell is listed, and leaves the exit code alone.
    let id = "ipp_2KZtV8hrTPdf0Q0lS4LCDGosGXl";
    place.write("set.yaml", &module_set("by-id", &[id]));
    place.write("by-id.yaml", &ingress("by-id", HOST, "/id", "by-id", "web"));
    let unsure = check(&place, &[]);
    assert_eq!(code(&unsure), 0, "{}", said(&unsure));
    assert!(
        said(&unsure).contains("not checked: ") && said(&unsure).contains(id),
        "{}",
        said(&unsure)
    );
    // Everything that is wrong, at once.
    place.write(
        "web.yaml",
        &fine
            .replace("10.0.0.0/8", "10.0.0.0/99")
            .replace("{port: 80}", "{port: 81}"),
    );
    let wrong = check(&place, &[]);
    assert_eq!(code(&wrong), 1);
    for finding in ["error[bad-cidr]", "error[service-port"] {
        assert!(
            said(&wrong).contains(finding),
            "{finding} in {}",
            said(&wrong)
        );
    }
    let gone = check(&place, &["-f", "/nowhere/at/all"]);
    assert_eq!(
        (code(&gone), said(&gone).contains("/nowhere/at/all")),
        (2, true)
    );
}

#[test]
fn wrong_usage_ends_with_two_in_lines_that_fit_and_say_how() {
    let place = Place::new();
    let manifests = place.manifests().display().to_string();
    let up = ["up", "-f", manifests.as_str()];
    let cases: [(&[&str], &str); 10] = [
        (
            &["--service", "shop/web:80=localhost:3000"],
            "\"localhost:3000\" is not an IP address",
        ),
        (
            &["--service", "web:80=127.0.0.1:3000"],
            "default/web:80=127.0.0.1:3000",
        ),
        (&["--hosts", "=a.example.com"], "\"\" is not a namespace"),
        (&["--https", "8443"], "such as 127.0.0.1:8443"),
        (&["--lost-grace", "5"], "write 2s"),
        (&["--dial-allow", "here"], "such as 127.0.0.0/8"),
        (
            &["--api", "0.0.0.0:0", "--admin", "127.0.0.1:0"],
            "--api-tls-cert",
        ),
        (
            &[
                "--workers",
                "0",
                "--api",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
            ],
            "--workers",
        ),
        (
            &["--demo", "--https", "0.0.0.0:0", "--admin", "127.0.0.1:0"],
            "loopback",
        ),
        (&["-f", "/nowhere/at/all"], "/nowhere/at/all"),
    ];
    for (more, words) in cases {
        let output = run(&place, &[&up[..], more].concat());
        let text = said(&output);
        assert_eq!(code(&output), 2, "{more:?}: {text}");
        assert!(flat(&output).contains(words), "{more:?}: {words} in {text}");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(100), "{more:?}: {text}");
    }
    for more in [
        &["status", "--admin", "10.0.0.1:1"][..],
        &["get", "routes", "--edge", "http://10.0.0.1:1"],
    ] {
        assert_eq!(code(&run(&place, more)), 2, "{more:?}");
    }
}

#[test]
fn whoever_asks_what_is_not_there_is_told_what_to_do() {
    let place = Place::new();
    let keyless = run(&place, &["get", "routes"]);
    assert_eq!(code(&keyless), 1);
    assert!(
        flat(&keyless).contains("--api-key-file"),
        "{}",
        said(&keyless)
    );
    // A port that nobody listens on: it was ours a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .expect("a port");
    let key = place.manifests().join("key");
    fs::write(&key, "a-key\n").expect("it is written");
    let (edge, key) = (format!("http://{port}"), key.display().to_string());
    let alone = run(
        &place,
        &["get", "routes", "--edge", &edge, "--api-key-file", &key],
    );
    assert_eq!(code(&alone), 1);
    assert!(flat(&alone).contains("portcullis up"), "{}", said(&alone));
    let alone = run(&place, &["status", "--admin", &port.to_string()]);
    assert_eq!(
        (code(&alone), flat(&alone).contains("portcullis up")),
        (1, true)
    );
}

#[test]
fn a_first_start_leaves_two_private_keys_and_commands_find_theirs() {
    let place = Place::new();
    place.write("web.yaml", &service_object("web"));
    // Off loopback the status needs a key too.
    let mut arguments = place.arguments(&[]);
    let admin = arguments.iter().position(|argument| argument == "--admin");
    "0.0.0.0:0".clone_into(&mut arguments[admin.expect("it has one") + 1]);
    let portcullis = Portcullis::start(Path::new(PROGRAM), &arguments);
    let admin = format!("127.0.0.1:{}", portcullis.address("admin").port());
    let api = portcullis.address("api");
    let edge = format!("http://{api}");
    let data = place.data().display().to_string();
    let keyless = run(&place, &["status", "--admin", &admin]);
    assert_eq!(code(&keyless), 1);
    assert!(flat(&keyless).contains("--data-dir"), "{}", said(&keyless));
    let allowed = run(&place, &["status", "--admin", &admin, "--data-dir", &data]);
    assert_eq!(code(&allowed), 0, "{}", said(&allowed));
    let key_file = |name: &str| place.data().join(name);
    for name in ["api-key", "controller-key"] {
        let mode = fs::metadata(key_file(name))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let listed = run(
        &place,
        &["api-keys", "list", "--edge", &edge, "--data-dir", &data],
    );
    for role in ["write", "controller"] {
        assert!(
            said(&listed).contains(&format!("  {role} ")),
            "{}",
            said(&listed)
        );
    }
    let by_file = key_file("api-key").display().to_string();
    assert_eq!(
        code(&run(
            &place,
            &["get", "edges", "--edge", &edge, "--api-key-file", &by_file]
        )),
        0
    );
    let key = fs::read_to_string(key_file("api-key")).expect("it can be read");
    let by_environment = Command::new(PROGRAM)
        .args(["get", "edges", "--edge", &edge])
        .env("PORTCULLIS_API_KEY", key.trim())
        .env("XDG_DATA_HOME", place.data())
        .output()
        .expect("it runs");
    assert_eq!(code(&by_environment), 0, "{}", said(&by_environment));
}

#[test]
fn a_refusal_of_the_edge_is_said_in_its_words() {
    let place = Place::new();
    place.write("web.yaml", &service_object("web"));
    let portcullis = place.up(&[]);
    let edge = format!("http://{}", portcullis.address("api"));
    let data = place.data().display().to_string();
    // The key that writes is no controller's.
    let more = [
        "api-keys",
        "create",
        "--role",
        "controller",
        "--edge",
        &edge,
        "--data-dir",
        &data,
    ];
    let refused = run(&place, &more);
    assert_eq!(
        (
            code(&refused),
            said(&refused).contains("controller_key_required")
        ),
        (1, true)
    );
    let unknown = run(
        &place,
        &[
            "api-keys",
            "delete",
            "ak_2KZtV8hrTPdf0Q0lS4LCDGosGXl",
            "--edge",
            &edge,
            "--data-dir",
            &data,
        ],
    );
    assert_eq!(code(&unknown), 1);
    assert!(
        flat(&unknown).contains("there is no API key"),
        "{}",
        said(&unknown)
    );
}

#[test]
fn a_directory_in_use_is_refused_with_its_user_and_a_kill_leaves_no_lock() {
    let place = Place::new();
    place.write("web.yaml", &service_object("web"));
    let mut first = place.up(&[]);
    let refused = second(&place);
    let text = flat(&refused);
    assert_eq!(code(&refused), 1);
    assert!(text.contains(&format!("process {}", first.pid())), "{text}");
    assert!(text.contains("--data-dir"), "{text}");
    first.kill();
    // A key that others could read meanwhile is shut to them again, and is the same key.
    let key = place.data().join("api-key");
    let before = fs::read(&key).expect("it is there");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("its mode is set");
    let again = place.up(&[]);
    let mode = fs::metadata(&key)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(
        (mode & 0o777, fs::read(&key).expect("it is there")),
        (0o600, before)
    );
    assert!(
        again.log().contains("others could read this API key"),
        "{}",
        again.log()
    );
}

#[test]
fn a_port_in_use_names_its_flag() {
    let place = Place::new();
    place.write("web.yaml", &service_object("web"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken
        .local_addr()
        .map(|a| (taken, a.to_string()))
        .expect("its address");
    for flag in ["--https", "--http", "--api", "--admin"] {
        let mut arguments = place.arguments(&[]);
        let at = arguments
            .iter()
            .position(|a| a == flag)
            .expect("it is given");
        arguments[at + 1].clone_from(&taken.1);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let refused = run(&place, &arguments);
        let text = flat(&refused);
        assert_eq!(code(&refused), 1, "{text}");
        assert!(
            text.contains(flag) && text.contains(&taken.1),
            "{flag}: {text}"
        );
    }
}

/// Routes that are open, open with a warning, and closed.
fn three_routes(place: &Place, web: &Backend) -> (Portcullis, String) {
    let text = service_object("web")
        + &service_object("idle")
        + &policy("office", &["127.0.0.1/32"])
        + &module_set("office", &["office"])
        + &ingress("web", HOST, "/", "office", "web")
        + &ingress("idle", HOST, "/idle", "", "idle")
        + &ingress("closed", HOST, "/closed", "nowhere", "web");
    place.write("web.yaml", &text);
    // PORT may be a number; the Service's only port has no name.
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let _closed = portcullis.wait_route(HOST, "/closed", RouteState::Closed);
    (portcullis, text)
}

/// The status as programs read it.
fn document(portcullis: &Portcullis) -> Value {
    let admin = portcullis.address("admin");
    let answer = plain_get(admin, "localhost", "/status", &[]).expect("it answers");
    serde_json::from_slice(&answer.body).expect("it is JSON")
}

#[test]
fn every_route_has_every_member_of_the_status_document() {
    let (web, place) = (Backend::start("web"), Place::new());
    let (portcullis, _text) = three_routes(&place, &web);
    let document = document(&portcullis);
    let routes = document["routes"].as_array().expect("a list");
    let members = [
        "host",
        "path",
        "path_type",
        "state",
        "since",
        "serving",
        "wanted",
        "modules",
        "backend",
        "owner",
        "reasons",
    ];
    for route in routes {
        let object = route.as_object().expect("an object");
        for member in members {
            assert!(object.contains_key(member), "{member} in {route:#}");
        }
        let since = route["since"].as_str().expect("a text");
        assert!(
            since.len() == 20 && since.ends_with('Z') && &since[10..11] == "T",
            "RFC 3339: {since}"
        );
    }
}

#[test]
fn the_status_document_says_what_is_declared_serves_and_warns() {
    let (web, place) = (Backend::start("web"), Place::new());
    let (portcullis, _text) = three_routes(&place, &web);
    let document = document(&portcullis);
    let routes = document["routes"].as_array().expect("a list");
    let by_path = |path: &str| {
        routes
            .iter()
            .find(|r| r["path"] == path)
            .expect("it is there")
    };
    let open = by_path("/");
    assert_eq!(
        open["modules"],
        serde_json::json!(["ipRestriction", "headers"])
    );
    assert_eq!(
        (&open["backend"], &open["owner"]),
        (&"default/web:80".into(), &"default/web".into())
    );
    assert_eq!(
        (
            &open["serving"]["generation"],
            &open["wanted"]["generation"]
        ),
        (&1.into(), &1.into())
    );
    let closed = by_path("/closed");
    assert_eq!(
        (&closed["serving"], closed["wanted"]["generation"].is_u64()),
        (&Value::Null, true)
    );
    let reason = closed["reasons"][0].as_object().expect("a reason");
    for member in [
        "code", "severity", "message", "object", "field", "file", "line", "remedy",
    ] {
        assert!(reason.contains_key(member), "{member} in {reason:#?}");
    }
    // A warning stands in the reasons and refuses nothing by itself.
    let idle = by_path("/idle");
    assert_eq!(
        (&idle["state"], &idle["reasons"][0]["severity"]),
        (&"open".into(), &"warning".into())
    );
    for event in portcullis.events() {
        let object = event.as_object().expect("an object a line");
        assert!(
            object.contains_key("at") && object.contains_key("reasons"),
            "{event:#}"
        );
    }
}

#[test]
fn metrics_have_their_names_and_equal_content_written_again_is_silent() {
    let (web, place) = (Backend::start("web"), Place::new());
    let (portcullis, text) = three_routes(&place, &web);
    let admin = portcullis.address("admin");
    assert_eq!(
        portcullis.client().get(HOST, "/").map(|a| a.status).ok(),
        Some(200)
    );
    let metrics = plain_get(admin, "localhost", "/metrics", &[])
        .expect("it answers")
        .text();
    for name in [
        "portcullis_edge_writes_total",
        "portcullis_edge_reads_total",
        "portcullis_events_total",
        "portcullis_status_writes_total",
        "portcullis_requests_total{verdict=\"passed\",reason=\"\"}",
        "portcullis_routes{state=\"open\"}",
        "portcullis_routes{state=\"closed\"}",
    ] {
        assert!(
            metrics.contains(&format!("\n{name} ")),
            "{name} in {metrics}"
        );
    }
    // Equal content written again changes nothing: no generation, no write, no event.
    let (writes, told) = (
        portcullis.metric("portcullis_edge_writes_total"),
        portcullis.events().len(),
    );
    place.write("web.yaml", &format!("# The same, said again.\n{text}"));
    std::thread::park_timeout(Duration::from_secs(2));
    assert_eq!(portcullis.metric("portcullis_edge_writes_total"), writes);
    assert_eq!(portcullis.events().len(), told);
}

#[test]
fn one_broken_object_is_one_diagnostic_and_the_rest_of_its_file_counts() {
    let web = Backend::start("web");
    let place = Place::new();
    let broken = ingress("broken", HOST, "/broken", "", "web")
        .replace("pathType: Prefix", "pathType: [Prefix]");
    let empty = "apiVersion: v1\nkind: Secret\nmetadata: {name: auth}\nstringData: {client-secret: \"\"}\n---\n\
        apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: NgrokModuleSet\nmetadata: {name: login}\nmodules:\n\
        \x20 oauth: {google: {clientId: id, clientSecret: {name: auth, key: client-secret}}}\n---\n";
    let text = service_object("web")
        + &broken
        + &ingress("web", HOST, "/", "", "web")
        + empty
        + &ingress("login", HOST, "/login", "login", "web");
    place.write("web.yaml", &text);
    let portcullis = place.up(&["--service", &service("web", web.address)]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let closed = portcullis.wait_route(HOST, "/broken", RouteState::Closed);
    assert_eq!(closed.reasons.len(), 1, "{closed:#?}");
    assert!(
        closed.reasons[0].object == "Ingress default/broken" && closed.reasons[0].line.is_some(),
        "{closed:#?}"
    );
    let login = portcullis.wait_route(HOST, "/login", RouteState::Closed);
    assert!(
        login
            .reasons
            .iter()
            .any(|r| r.object == "Secret default/auth" || r.message.contains("empty")),
        "{login:#?}"
    );
    let client = portcullis.client();
    for (path, status) in [("/", 200), ("/broken/x", 503), ("/login", 503)] {
        assert_eq!(
            client.get(HOST, path).map(|a| a.status).ok(),
            Some(status),
            "{path}"
        );
    }
    assert!(web.seen().iter().all(|r| r["target"] == "/"));
}

/// The route of the sample is at the edge without a backend, and its event says all that is wrong.
#[test]
fn the_sample_is_staged_and_its_one_event_names_everything() {
    let place = Place::new();
    let sample =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/game-2048/manifest.yml");
    place.write(
        "manifest.yml",
        &fs::read_to_string(sample).expect("the sample is there"),
    );
    let portcullis = place.up(&[]);
    let host = "test-ingress-12345.ngrok.app";
    let _closed = portcullis.wait_route(host, "/", RouteState::Closed);
    let state = place
        .state(portcullis.address("api"))
        .expect("the state can be read");
    let edges = state["edges"].as_object().expect("edges");
    let routes: Vec<&Value> = edges
        .values()
        .filter_map(|e| e["routes"].as_object())
        .flat_map(|r| r.values())
        .collect();
    assert_eq!(routes.len(), 1, "{state:#}");
    assert_eq!(routes[0]["backend"], Value::Null, "{state:#}");
    let event = until("its event is printed", LIMIT, || {
        let found = portcullis
            .events()
            .into_iter()
            .find(|event| event["host"] == host);
        found.ok_or("no event")
    });
    let text = event["reasons"].to_string();
    for word in [
        "Secret default/auth",
        "client-secret",
        "clientId",
        "not enforced by this edge yet",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
}
