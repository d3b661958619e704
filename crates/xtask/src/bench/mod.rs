//! `cargo xtask bench`: what a request costs beside Debian's nginx, and what `check` costs.
//!
//! The measure is processor time of the proxy per request, in interleaved rounds on the same core,
//! reported as ratios of the same round: a busy machine slows both. The load generator and the
//! backend share core 0, the proxies have core 1. [`loads`] is the table of what is measured.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use crate::run::{has, root, run, say};

mod check;
mod loads;
mod page;
mod rounds;
mod servers;

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// Rounds of every load; each is one run of either side
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of every run
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Only loads whose name holds this text; docs/performance.md stays as it is
    #[arg(long)]
    only: Option<String>,
    /// Only build and start both sides, print where they listen, and wait: for profilers
    #[arg(long)]
    serve: bool,
}

pub(crate) fn bench(choice: &Choice) -> anyhow::Result<()> {
    install()?;
    let (program, in_clear) = build()?;
    let dir = root().join("target/bench");
    fs::create_dir_all(&dir)?;
    let sides = servers::start(&dir, &program, &in_clear)?;
    if choice.serve {
        for (name, servers) in [("portcullis", sides.ours), ("nginx", sides.rival)] {
            for server in servers {
                say(&format!("{name}: {server}"));
            }
        }
        say("Enter ends them");
        std::io::stdin().read_line(&mut String::new())?;
        return Ok(());
    }
    let mut results = Vec::new();
    for load in loads::LOADS {
        if choice
            .only
            .as_ref()
            .is_none_or(|only| load.name.contains(only.as_str()))
        {
            let result = rounds::measure(load, &sides, choice.rounds, choice.seconds)?;
            say(&page::row(&result));
            results.push(result);
        }
    }
    drop(sides);
    if choice.only.is_some() {
        return Ok(());
    }
    let times = check::measure(&dir, &program)?;
    fs::write(
        root().join("docs/performance.md"),
        page::page(&results, &times)?,
    )?;
    say("docs/performance.md is written");
    Ok(())
}

/// The programs that the benchmark runs, with the Debian package that has each.
const PROGRAMS: [(&str, &str); 5] = [
    ("nginx", "nginx-light"),
    ("wrk", "wrk"),
    ("h2load", "nghttp2-client"),
    ("openssl", "openssl"),
    ("taskset", "util-linux"),
];

fn install() -> anyhow::Result<()> {
    let missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| which(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !has("apt-get") {
        bail!(
            "the benchmark needs {}: please install them",
            missing.join(", ")
        );
    }
    say(&format!("installing {}", missing.join(", ")));
    run("package lists", "apt-get", &["update", "-q"])?;
    let mut arguments = vec!["install", "-y", "-q", "--no-install-recommends"];
    arguments.extend(missing);
    run("install", "apt-get", &arguments)
}

/// Where a program is; those of system services are not on everybody's path.
fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// A command that runs on one core.
fn on_core(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// Builds both programs as releases are built; cargo says where they lie.
fn build() -> anyhow::Result<(PathBuf, PathBuf)> {
    say("release build");
    let output = Command::new("cargo")
        .args(["build", "--release", "-p", "cli", "-p", "bench-proxy"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("cargo ended with {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let programs: Vec<_> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .collect();
    let find = |name: &str| {
        let program = programs.iter().find(|program| program.ends_with(name));
        program
            .cloned()
            .with_context(|| format!("cargo did not build {name}"))
    };
    Ok((find("portcullis")?, find("bench-proxy")?))
}
