//! `cargo xtask fuzz`: every target of `fuzz/` for some seconds. What they find is kept under
//! `fuzz/artifacts`, and becomes a test of the crate that it was found in.

use std::fs;

use anyhow::Context as _;

use crate::run::{has, root, run, say};

pub(crate) fn fuzz(seconds: u32) -> anyhow::Result<()> {
    run(
        "nightly, which fuzzing needs",
        "rustup",
        &["toolchain", "install", "nightly", "--profile", "minimal"],
    )?;
    if !has("cargo-fuzz") {
        say("installing cargo-fuzz");
        run("install", "cargo", &["install", "--locked", "cargo-fuzz"])?;
    }
    let limit = format!("-max_total_time={seconds}");
    for target in targets()? {
        // Unoptimised: built sooner, and arithmetic that overflows is found.
        let arguments = [
            "+nightly",
            "fuzz",
            "run",
            "--dev",
            "--fuzz-dir",
            "fuzz",
            &target,
            "--",
            &limit,
            "-max_len=16384",
            "-verbosity=0",
        ];
        run("fuzz", "cargo", &arguments)?;
    }
    Ok(())
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
