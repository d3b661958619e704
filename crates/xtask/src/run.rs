//! Running other programs, and saying so.

use std::{path::PathBuf, process::Command, time::Instant};

use anyhow::{Context as _, bail};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path.pop();
    path
}

/// One line for the person at the terminal.
pub(crate) fn say(line: &str) {
    #[expect(
        clippy::print_stderr,
        reason = "a chore talks to a person at a terminal"
    )]
    {
        eprintln!("xtask: {line}");
    }
}

/// Runs a program in the root and fails when it fails.
pub(crate) fn run(what: &str, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    run_with(what, program, arguments, &[])
}

/// The same with environment variables.
pub(crate) fn run_with(
    what: &str,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> anyhow::Result<()> {
    say(&format!("{what}: {program} {}", arguments.join(" ")));
    let begun = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("{what}: {program} ended with {status}");
    }
    say(&format!(
        "{what}: fine after {} s",
        begun.elapsed().as_secs()
    ));
    Ok(())
}

/// Whether a program answers to `--version`.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
