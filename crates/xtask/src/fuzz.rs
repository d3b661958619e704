//! `cargo xtask fuzz`: every target of `fuzz/` for some seconds. What they find is kept under
//! `fuzz/artifacts`, and becomes a test of the crate that it was found in.

use std::{fs, process::Command};

use anyhow::Context as _;

use crate::{
    peers,
    run::{command, does, root, run, run_command},
};

/// Unoptimised: built sooner, and arithmetic that overflows is found.
const FUZZ: [&str; 4] = ["run", "--dev", "--fuzz-dir", "fuzz"];

pub(crate) fn fuzz(seconds: u32) -> anyhow::Result<String> {
    // One that is there is good enough: each newer one would be built for anew.
    if !does("rustup", &["run", "nightly", "rustc", "--version"]) {
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        run("nightly, which fuzzing needs", "rustup", &install)?;
    }
    let program = peers::from_crates("cargo-fuzz", "0.13.2")?
        .display()
        .to_string();
    let targets = targets()?;
    for target in &targets {
        let limit = format!("-max_total_time={seconds}");
        let mut fuzz = command(&program, &FUZZ);
        fuzz.args([target, "--", &limit, "-max_len=16384", "-verbosity=0"]);
        run_command("fuzz", on_nightly(&mut fuzz))?;
    }
    Ok(format!("{} targets, {seconds} s each", targets.len()))
}

/// `cargo xtask` itself runs on the pinned toolchain, and hands that on.
fn on_nightly(command: &mut Command) -> &mut Command {
    command
        .env("RUSTUP_TOOLCHAIN", "nightly")
        .env_remove("CARGO")
}

/// The targets, by the names of their files.
fn targets() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")? {
        let path = entry?.path();
        names.extend(
            path.file_stem()
                .and_then(|name| name.to_str())
                .map(str::to_owned),
        );
    }
    names.sort();
    Ok(names)
}
