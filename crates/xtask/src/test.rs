//! What `cargo xtask test` runs, in order.

use anyhow::bail;

use crate::run::{has, run, run_with, say};

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

/// Programs that the tests talk to, with the Debian package that has each.
const PEERS: [(&str, &str); 4] = [
    ("curl", "curl"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("go", "golang"),
];

pub(crate) fn test(all: bool) -> anyhow::Result<()> {
    peers()?;
    run("format", "cargo", &["fmt", "--all", "--check"])?;
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    run("lints", "cargo", &lints)?;
    let docs = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--quiet",
    ];
    run_with(
        "documentation",
        "cargo",
        &docs,
        &[("RUSTDOCFLAGS", RUSTDOC)],
    )?;
    let tests = ["test", "--workspace", "--no-fail-fast"];
    let long: &[_] = if all {
        &[("PORTCULLIS_LONG", "1")]
    } else {
        &[]
    };
    run_with("tests", "cargo", &tests, long)?;
    if all {
        slow()?;
    }
    say("all of it passed");
    Ok(())
}

/// What takes long: not part of every push.
fn slow() -> anyhow::Result<()> {
    run(
        "wasm target",
        "rustup",
        &["target", "add", "wasm32-unknown-unknown"],
    )?;
    let mut core = vec!["check", "--target", "wasm32-unknown-unknown"];
    for name in CORE {
        core.extend(["-p", name]);
    }
    run("core without an operating system", "cargo", &core)?;
    for name in crate::borders::crates() {
        run(
            "alone",
            "cargo",
            &["check", "--quiet", "--all-targets", "-p", name],
        )?;
    }
    if !has("cargo-deny") {
        say("installing cargo-deny (licences, bans, sources)");
        run("install", "cargo", &["install", "--locked", "cargo-deny"])?;
    }
    run(
        "dependencies",
        "cargo",
        &["deny", "check", "bans", "licenses", "sources"],
    )?;
    if !has("cargo-machete") {
        say("installing cargo-machete (dependencies that nobody uses)");
        run(
            "install",
            "cargo",
            &["install", "--locked", "cargo-machete"],
        )?;
    }
    run("unused dependencies", "cargo-machete", &["crates"])?;
    crate::fuzz::fuzz(10)
}

fn peers() -> anyhow::Result<()> {
    let missing: Vec<_> = PEERS
        .iter()
        .filter(|(program, _)| !has_any(program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    if !has("apt-get") {
        bail!(
            "the tests need {}: please install them",
            packages.join(", ")
        );
    }
    say(&format!("installing {}", packages.join(", ")));
    run("package lists", "apt-get", &["update", "-q"])?;
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(packages);
    run("install", "apt-get", &install)
}

/// `go` answers to `version`, not to `--version`.
fn has_any(program: &str) -> bool {
    has(program)
        || std::process::Command::new(program)
            .arg("version")
            .output()
            .is_ok_and(|output| output.status.success())
}

/// Stored results and generated files are rewritten by the tests that hold them.
pub(crate) fn rewrite() -> anyhow::Result<()> {
    let tests = ["test", "--workspace", "--no-fail-fast"];
    run_with("rewrite", "cargo", &tests, &[("PORTCULLIS_REWRITE", "1")])
}
