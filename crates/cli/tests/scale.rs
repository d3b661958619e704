//! `check` on many objects: memory has a limit, and cost grows with the number of objects only.

mod common;

use std::{
    fmt::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use common::{PROGRAM, Place, ingress, module_set, policy, service_object};
use testkit::usage::{Usage, watch};

/// Ingresses on hosts of their own, with one Secret for every five.
fn manifests(ingresses: usize) -> String {
    let mut text = service_object("web")
        + &policy("office", &["10.0.0.0/8"])
        + &module_set("office", &["office"]);
    for number in 0..ingresses {
        text += &ingress(
            &format!("web-{number}"),
            &format!("h{number}.example.com"),
            "/",
            "office",
            "web",
        );
        if number % 5 == 0 {
            writeln!(
                text,
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s{number}}}\nstringData: {{key: value-{number}}}\n---"
            )
            .expect("a String takes all");
        }
    }
    text
}

fn check(ingresses: usize) -> Usage {
    let place = Place::new();
    place.write("all.yaml", &manifests(ingresses));
    let child = Command::new(PROGRAM)
        .args([
            "check",
            "-o",
            "json",
            "--service",
            "default/web:80=127.0.0.1:3000",
            "-f",
        ])
        .arg(place.manifests())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    watch(child, Duration::from_secs(300))
}

#[test]
fn ten_thousand_ingresses_cost_four_times_what_a_quarter_of_them_costs() {
    let (quarter, whole) = (check(2_500), check(10_000));
    assert_eq!((quarter.code, whole.code), (Some(0), Some(0)));
    assert!(whole.peak_kib < 500 * 1024, "{} KiB", whole.peak_kib);
    // Quadratic growth would be sixteen times. Start-up and noise weigh on the smaller one.
    assert!(
        whole.peak_kib < quarter.peak_kib * 6,
        "{quarter:?} {whole:?}"
    );
    assert!(whole.cpu < quarter.cpu * 7, "{quarter:?} {whole:?}");
}
