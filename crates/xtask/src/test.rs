//! What `cargo xtask test` runs, in order.

use anyhow::bail;

use crate::{
    peers::{self, ETCD, FromGo, GO, H2SPEC, KUBE_APISERVER, PYTHON},
    report::Report,
    run::{command, run, run_command, run_counting, run_with, say, version},
};

/// The crates that must build where there is no operating system: no sockets, files or clocks.
const CORE: [&str; 7] = [
    "model",
    "resources",
    "routing",
    "edge-state",
    "translation",
    "edge-api",
    "plan",
];

/// The documentation is for those who work on the code: links to private items are meant.
const RUSTDOC: &str = "-D warnings -A rustdoc::private_intra_doc_links";

/// Tests that need peers which are slow to build: targets with `test = false` in `cli`, which
/// plain `cargo test` leaves out, so that none of them passes without its peer.
const WITH_PEERS: [&str; 2] = ["cluster", "http2_conformance"];

pub(crate) fn test(all: bool) -> anyhow::Result<()> {
    let mut report = Report::default();
    let ready = report.part("peers", || PYTHON.install());
    if ready && fast(&mut report, all) && all {
        slow(&mut report);
    }
    report.finish()
}

/// What every push must pass. Whether the code compiles: if not, nothing else says more.
fn fast(report: &mut Report, all: bool) -> bool {
    report.part("format", || {
        run("format", "cargo", &["fmt", "--all", "--check"])?;
        Ok(tool("fmt"))
    });
    report.part("lints", lints);
    report.part("documentation", || {
        let mut arguments = vec!["doc", "--workspace", "--no-deps"];
        arguments.extend(["--document-private-items", "--quiet"]);
        let strict = [("RUSTDOCFLAGS", RUSTDOC)];
        run_with("documentation", "cargo", &arguments, &strict)?;
        Ok(String::new())
    });
    let built = report.part("build", || {
        let arguments = ["test", "--workspace", "--no-run", "--quiet"];
        run("build", "cargo", &arguments)?;
        Ok(version("rustc", &["--version"]).unwrap_or_default())
    });
    if built {
        report.part("tests", || {
            let mut tests = command("cargo", &["test", "--workspace", "--no-fail-fast"]);
            if all {
                tests.env("PORTCULLIS_LONG", "1");
            }
            let passed = run_counting("tests", &mut tests, passed)?;
            let rounds = if all { ", long rounds" } else { "" };
            Ok(format!("{passed} tests{rounds}"))
        });
    }
    built
}

/// What takes long: not part of every push.
fn slow(report: &mut Report) {
    report.part("core without an OS", core);
    report.part("each crate alone", || {
        let names: Vec<_> = crate::borders::crates().collect();
        let alone = |name: &&str| run("alone", "cargo", &["check", "--quiet", "-p", name]).is_err();
        let failed: Vec<_> = names.iter().copied().filter(|name| alone(name)).collect();
        if !failed.is_empty() {
            bail!("{} do not compile alone", failed.join(", "));
        }
        Ok(format!("{} crates", names.len()))
    });
    report.part("dependencies", dependencies);
    report.part("unused dependencies", || {
        let (name, version) = ("cargo-machete", "0.9.2");
        let program = peers::from_crates(name, version)?;
        run_command(
            "unused",
            &mut command(&program.display().to_string(), &["crates"]),
        )?;
        Ok(format!("{name} {version}"))
    });
    report.part("Kubernetes API", || {
        with_peers("cluster", &[ETCD, KUBE_APISERVER])
    });
    report.part("HTTP/2 conformance", || {
        with_peers("http2_conformance", &[H2SPEC])
    });
    report.part("fuzzing", || crate::fuzz::fuzz(10));
}

fn lints() -> anyhow::Result<String> {
    let deny = ["--", "-D", "warnings"];
    let mut workspace = command("cargo", &["clippy", "--workspace", "--all-targets"]);
    run_command("lints", workspace.args(deny))?;
    // `--all-targets` does not mean those with `test = false`.
    let mut rest = command("cargo", &["clippy", "-p", "cli"]);
    rest.args(WITH_PEERS.iter().flat_map(|test| ["--test", test]));
    run_command("lints", rest.args(deny))?;
    Ok(tool("clippy"))
}

fn core() -> anyhow::Result<String> {
    const TARGET: &str = "wasm32-unknown-unknown";
    run("wasm target", "rustup", &["target", "add", TARGET])?;
    let mut core = vec!["check", "--target", TARGET];
    core.extend(CORE.iter().flat_map(|name| ["-p", name]));
    run("core", "cargo", &core)?;
    Ok(format!("{} crates on {TARGET}", CORE.len()))
}

/// Licences, bans, sources, and known faults where their database is within reach.
fn dependencies() -> anyhow::Result<String> {
    let (name, version) = ("cargo-deny", "0.20.2");
    let program = peers::from_crates(name, version)?.display().to_string();
    let mut check = vec!["check", "bans", "licenses", "sources"];
    let reachable = run("advisories", &program, &["fetch", "db"]).is_ok();
    if reachable {
        check.push("advisories");
    } else {
        say("the database of advisories is out of reach: known faults are not looked up");
    }
    run("dependencies", &program, &check)?;
    let advisories = if reachable {
        ""
    } else {
        ", advisories NOT looked up: out of reach"
    };
    Ok(format!("{name} {version}{advisories}"))
}

/// A test that talks to peers which are built for it.
fn with_peers(test: &str, needed: &[FromGo]) -> anyhow::Result<String> {
    let mut names = vec![GO.install()?];
    for peer in needed {
        names.push(peer.build()?);
    }
    let mut tests = command(
        "cargo",
        &["test", "-p", "cli", "--test", test, "--", "--nocapture"],
    );
    if run_counting(test, &mut tests, passed)? == 0 {
        bail!("{test} has no test");
    }
    Ok(names.join(", "))
}

/// What a line of `cargo test` says about passed tests: `test result: ok. 12 passed; …`.
fn passed(line: &str) -> u64 {
    line.strip_prefix("test result: ok. ")
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

/// A tool of the toolchain by name and version.
fn tool(name: &str) -> String {
    version("cargo", &[name, "--version"])
        .map(|line| line.split(" (").next().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

/// Stored results and generated files are rewritten by the tests that hold them.
pub(crate) fn rewrite() -> anyhow::Result<()> {
    let tests = ["test", "--workspace", "--no-fail-fast"];
    run_with("rewrite", "cargo", &tests, &[("PORTCULLIS_REWRITE", "1")])
}
