//! Ten thousand Ingresses and two thousand Secrets: in linear time and bounded memory.
//!
//! Alone in its process, because it looks at the memory of all of it.

use std::{fmt::Write as _, fs, path::Path};

use manifests::{files::Roots, yaml::Limits};
use resources::snapshot::Snapshot;

/// What the process has used at most, from the kernel's books.
fn peak_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .expect("a number")
        .parse::<usize>()
        .expect("a number")
        * 1024
}

/// Processor time of this process in ticks: what others do on the machine does not count.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<_> = stat
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
}

fn ingress(out: &mut String, n: usize) {
    write!(
        out,
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web-{n}\n  namespace: team-{team}\n  annotations:\n    k8s.ngrok.com/modules: protected\nspec:\n  ingressClassName: ngrok\n  rules:\n  - host: host-{n}.example.com\n    http:\n      paths:\n      - path: /\n        pathType: Prefix\n        backend:\n          service:\n            name: web\n            port:\n              number: 80\n      - path: /admin\n        pathType: Exact\n        backend:\n          service:\n            name: admin\n            port:\n              name: http\n",
        team = n % 50
    )
    .expect("written");
}

fn fill(dir: &Path, ingresses: usize, secrets: usize) {
    let files = 50;
    for file in 0..files {
        let mut text = String::new();
        for n in (file..ingresses).step_by(files) {
            ingress(&mut text, n);
        }
        for n in (file..secrets).step_by(files) {
            write!(text, "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s-{n}}}\nstringData: {{client-secret: '{n:064}'}}\n")
                .expect("written");
        }
        fs::write(dir.join(format!("{file:03}.yaml")), text).expect("written");
    }
}

fn read(ingresses: usize, secrets: usize) -> (Snapshot, u64) {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path(), ingresses, secrets);
    let roots = Roots::open(&[dir.path().to_owned()], 1000).expect("there");
    let begin = ticks();
    let snapshot = manifests::read(&roots, Limits::default());
    (snapshot, ticks() - begin)
}

#[test]
fn ten_thousand_ingresses_and_two_thousand_secrets() {
    let (small, first) = read(2_500, 500);
    assert_eq!(small.ingresses.len(), 2_500);
    drop(small);
    let (large, second) = read(10_000, 2_000);
    assert_eq!(
        (large.ingresses.len(), large.secrets.len()),
        (10_000, 2_000)
    );
    assert!(
        large.ingresses.values().all(|object| object.value.is_ok()),
        "all decode"
    );
    let peak = peak_bytes();
    println!(
        "{} MB at most; {first} ticks for a quarter, {second} for all",
        peak >> 20
    );
    assert!(peak < 200 << 20, "{} MB", peak >> 20);
    // Four times as much: linear is 4, quadratic is 16.
    assert!(second < 8 * first.max(5), "{first} ticks, then {second}");
}
