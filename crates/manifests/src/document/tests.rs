//! Files and the objects, findings and unreadable parts that they are read as.

use super::*;

/// Everything that a file is read as, a line each.
fn told(text: &str) -> Vec<String> {
    let contents = read(&"a.yaml".into(), text.as_bytes(), 100, &Limits::default());
    let Contents {
        objects,
        unnamed,
        findings,
        parts,
        readable,
        has_remains: _,
    } = &contents;
    let mut lines = Vec::new();
    for object in objects.iter().chain(unnamed) {
        lines.push(format!(
            "{} {}{}",
            object.kind(),
            object.key(),
            faults(object)
        ));
    }
    for finding in findings {
        let place = finding.place.as_ref().expect("files have places");
        lines.push(format!(
            "{}:{} finding {} {}",
            place.at.line, place.at.column, finding.kind, finding.problem
        ));
    }
    for part in parts {
        let hosts: Vec<_> = part.scan.hosts.iter().map(ToString::to_string).collect();
        let at = part.place.at;
        lines.push(format!(
            "{}:{} part {} [{}]",
            at.line,
            at.column,
            part.problem.code,
            hosts.join(" ")
        ));
    }
    assert_eq!(
        *readable,
        lines.iter().all(|line| !line.contains("part unreadable"))
    );
    lines
}

/// The mistakes of an object with their places, and the hosts salvaged from it.
fn faults(object: &AnyObject) -> String {
    let (origin, undecodable) = match object {
        AnyObject::Ingress(object) => (&object.origin, object.value.as_ref().err()),
        AnyObject::Secret(object) => (&object.origin, object.value.as_ref().err()),
        AnyObject::IpPolicy(object) => (&object.origin, object.value.as_ref().err()),
        AnyObject::Service(object) => (&object.origin, object.value.as_ref().err()),
        _ => return String::new(),
    };
    let Some(undecodable) = undecodable else {
        return String::new();
    };
    let problems = undecodable.problems.iter().map(|problem| {
        let at = origin.place(&problem.path).expect("files have places").at;
        format!(
            " {}:{} {} {}",
            at.line, at.column, problem.path, problem.code
        )
    });
    let hosts = undecodable
        .salvaged
        .hosts
        .iter()
        .map(|host| format!(" +{}", host.host));
    let hidden = undecodable
        .salvaged
        .hosts_unreadable
        .then(|| " +?".to_owned());
    problems.chain(hosts).chain(hidden).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(told(text), expected, "{text}");
}

const INGRESS: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
spec:
  rules:
  - host: a.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web, port: {number: 80}}}
";

#[test]
fn one_file_many_documents_one_bad_object() {
    let text = format!(
        "{INGRESS}---\n{}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: other}}\nstringData: {{k: v}}\n",
        INGRESS
            .replace("name: web\n", "name: two\n")
            .replace("pathType", "pathtype")
    );
    check(
        &text,
        &[
            "Ingress default/web",
            "Ingress default/two 24:9 spec.rules[0].http.paths[0].pathtype unknown-field +a.example.com",
            "Secret other/s",
        ],
    );
}

#[test]
fn lists_are_flattened() {
    let items = "- apiVersion: v1\n  kind: Namespace\n  metadata: {name: ns}\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}\n";
    check(
        &format!("apiVersion: v1\nkind: List\nitems:\n{items}"),
        &["Namespace ns", "Service default/s"],
    );
    check(
        "apiVersion: v1\nkind: SecretList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
        &["Secret default/a", "Secret default/b"],
    );
    check("apiVersion: v1\nkind: List\nitems: []\n", &[]);
    check(
        "apiVersion: v1\nkind: List\nitems: {host: a.example.com}\n",
        &["3:1 part wrong-type [a.example.com]"],
    );
    // A mistake in one item is that item's.
    check(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a}\n  data: {x: YQ==, x: Yg==}\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: b}\n",
        &["Secret default/a 7:10 data.x duplicate", "Secret default/b"],
    );
}

#[test]
fn somebody_elses_objects_are_ignored_and_ours_are_not() {
    check(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, name: b}\nspec: {x: 0644}\n",
        &[],
    );
    check(
        "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n",
        &[],
    );
    let told = told(
        "apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: NgrokModulSet\nmetadata: {name: a}\n",
    );
    assert!(
        told[0].starts_with("2:1 finding NgrokModulSet kind: unknown-kind"),
        "{told:?}"
    );
}

#[test]
fn an_object_under_a_wrong_version_is_there_and_invalid() {
    for api_version in [
        "extensions/v1beta1",
        "networking.k8s.io/v1beta1",
        "ingress.k8s.ngrok.com/v1alpha1",
    ] {
        let text = INGRESS.replace("networking.k8s.io/v1", api_version);
        check(
            &text,
            &["Ingress default/web 1:1 apiVersion wrong-version +a.example.com"],
        );
    }
    let list = format!(
        "apiVersion: extensions/v1beta1\nkind: IngressList\nitems:\n- {}",
        INGRESS.replace('\n', "\n  ")
    );
    let list = list.replace("networking.k8s.io/v1", "extensions/v1beta1");
    check(
        &list,
        &["Ingress default/web 4:3 apiVersion wrong-version +a.example.com"],
    );
}

#[test]
fn no_host_is_lost_to_a_duplicate_key() {
    let twice = INGRESS.replace(
        "  - host: a.example.com\n",
        "  - host: a.example.com\n    host: b.example.com\n",
    );
    let told = told(&twice);
    assert!(
        told[0].contains("7:5 spec.rules[0].host duplicate"),
        "{told:?}"
    );
    assert!(
        told[0].ends_with("+?") || told[0].contains("+b.example.com"),
        "{told:?}"
    );
    let rules = format!("{INGRESS}  rules:\n  - host: c.example.com\n");
    let told = super::tests::told(&rules);
    assert!(told[0].contains("spec.rules duplicate"), "{told:?}");
    assert!(
        told[0].ends_with("+?") || told[0].contains("+c.example.com"),
        "{told:?}"
    );
}

#[test]
fn routes_without_a_usable_name_are_staged_closed() {
    let unnamed = |from: &str, to: &str| told(&INGRESS.replace(from, to)).join("; ");
    assert_eq!(
        unnamed("  name: web\n", "  labels: {}\n"),
        "Ingress default/unnamed-0-1 3:1 metadata.name missing-field +a.example.com"
    );
    assert_eq!(
        unnamed("metadata:\n  name: web\n", ""),
        "Ingress default/unnamed-0-1 1:1 metadata.name missing-field +a.example.com"
    );
    assert_eq!(
        unnamed("  name: web\n", "  name: web\n  name: two\n"),
        "Ingress default/unnamed-0-1 4:3 metadata.name wrong-type +a.example.com"
    );
    assert_eq!(
        unnamed("name: web\n", "name: on\n  namespace: team\n"),
        "Ingress team/unnamed-0-1 4:3 metadata.name wrong-type +a.example.com"
    );
    assert_eq!(
        unnamed("name: web\n", "name: My_Web\n"),
        "Ingress default/unnamed-0-1 4:3 metadata.name bad-value +a.example.com"
    );
    assert_eq!(
        unnamed("name: web\n", "name: web\n  namespace: A_B\n"),
        "5:3 part bad-value [a.example.com]"
    );
    let told = told("apiVersion: v1\nkind: Secret\nmetadata: {}\n");
    assert!(
        told[0].starts_with("3:1 finding Secret metadata.name: missing-field"),
        "{told:?}"
    );
}

#[test]
fn a_document_without_a_kind_is_a_finding() {
    for (text, expected) in [
        (
            "a: 1\n",
            "1:1 finding  kind: missing-field: the document has no kind",
        ),
        ("kind: Ingress\n", "1:1 part missing-field []"),
        (
            "just words\n",
            "1:1 finding  : wrong-type: the document is not an object",
        ),
        (
            "- 1\n- 2\n",
            "1:1 finding  : wrong-type: the document is not an object",
        ),
        (
            "apiVersion: v1\nkind: [Ingress]\nhost: a.example.com\n",
            "2:1 part wrong-type [a.example.com]",
        ),
    ] {
        assert!(told(text)[0].starts_with(expected), "{:?}", told(text));
    }
}

#[test]
fn a_file_that_does_not_parse_gives_away_its_hosts() {
    check(
        &format!("{INGRESS}---\nkind: [\n"),
        &["14:7 part unreadable [a.example.com]"],
    );
    check("", &["1:1 part unreadable []"]);
}

#[test]
fn an_oversized_object_is_one_diagnostic() {
    let text = format!(
        "{INGRESS}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: big}}\nstringData: {{k: {}}}\n",
        "x".repeat(2 << 20)
    );
    check(
        &text,
        &["Ingress default/web", "Secret default/big 14:1  too-large"],
    );
}

#[test]
fn objects_are_as_old_as_they_stand() {
    let text = format!(
        "{INGRESS}---\n{}",
        INGRESS.replace("name: web\n", "name: two\n")
    );
    let contents = read(
        &"a.yaml".into(),
        text.as_bytes(),
        7 << 32,
        &Limits::default(),
    );
    let ages: Vec<_> = contents
        .objects
        .iter()
        .map(|object| {
            if let AnyObject::Ingress(object) = object {
                object.age
            } else {
                0
            }
        })
        .collect();
    assert_eq!(ages, [7 << 32, (7 << 32) + 1]);
}

#[test]
fn hosts_of_what_only_looks_like_a_declaration_are_staged_closed() {
    let rules = "spec: {rules: [{host: a.example.com, http: {paths: [{path: /admin}]}}]}\n";
    let edge = "spec: {hostports: ['a.example.com:443'], routes: []}\n";
    for (head, body, kind) in [
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingresss\n",
            rules,
            Kind::Ingress,
        ),
        ("apiVersion: v1\nkind: Ingress\n", rules, Kind::Ingress),
        (
            "apiVersion: example.com/v1\nkind: ingress\n",
            rules,
            Kind::Ingress,
        ),
        (
            "apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: HTTPEdge\n",
            edge,
            Kind::HttpsEdge,
        ),
        ("kind: Ingress\n", rules, Kind::Ingress),
        ("kind: Thing\n", rules, Kind::Ingress),
        ("apiVersion: networking.k8s.io/v1\n", rules, Kind::Ingress),
        ("apiVersion: 1\nkind: 1\n", rules, Kind::Ingress),
        ("", rules, Kind::Ingress),
        ("", edge, Kind::HttpsEdge),
        ("", "spec: {domain: a.example.com}\n", Kind::Domain),
        (
            "apiVersion: networking.k8s.io/v1\n",
            "spec: {}\n",
            Kind::Ingress,
        ),
        (
            "apiVersion: ingress.k8s.ngrok.com/v1alpha1\n",
            "spec: {}\n",
            Kind::HttpsEdge,
        ),
    ] {
        let text = format!("{head}metadata: {{name: web}}\n{body}");
        let contents = read(&"a.yaml".into(), text.as_bytes(), 100, &Limits::default());
        let [object] = contents.objects.as_slice() else {
            panic!("{text}: {:?}", contents.findings)
        };
        assert_eq!(
            (object.kind(), object.key().name.as_str()),
            (kind, "web"),
            "{text}"
        );
        let undecodable = match object {
            AnyObject::Ingress(object) => object.value.as_ref().expect_err(&text),
            AnyObject::HttpsEdge(object) => object.value.as_ref().expect_err(&text),
            AnyObject::Domain(object) => object.value.as_ref().expect_err(&text),
            _ => panic!("{text}"),
        };
        let hosts: Vec<_> = undecodable
            .salvaged
            .hosts
            .iter()
            .map(|h| h.host.as_str())
            .collect();
        if body == "spec: {}\n" {
            assert!(
                undecodable.salvaged.hosts_unreadable || head.contains("networking"),
                "{text}"
            );
        } else {
            assert_eq!(hosts, ["a.example.com"], "{text}");
        }
    }
    check(
        "kind: Lists\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a}\n",
        &[
            "Secret default/a",
            "1:1 finding Lists kind: unknown-kind: there is no kind Lists in v1 that this controller handles (did you mean List?)",
        ],
    );
}
