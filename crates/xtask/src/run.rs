//! Running other programs, and saying so.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    time::Instant,
};

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
    run_command(
        what,
        command(program, arguments).envs(environment.iter().copied()),
    )
}

/// The same for a command that is more than a name and arguments.
pub(crate) fn run_command(what: &str, command: &mut Command) -> anyhow::Result<()> {
    let begun = announce(what, command);
    let status = command.status().with_context(|| unstarted(command))?;
    ended(what, command, status, begun)
}

/// The same, and counts what a line of standard output says; all of it is shown as it comes.
pub(crate) fn run_counting(
    what: &str,
    command: &mut Command,
    count: impl Fn(&str) -> u64,
) -> anyhow::Result<u64> {
    let begun = announce(what, command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| unstarted(command))?;
    let output = child.stdout.take().context("its output is piped")?;
    let mut counted = 0;
    let mut terminal = std::io::stdout();
    for line in BufReader::new(output).lines() {
        let line = line?;
        counted += count(&line);
        writeln!(terminal, "{line}")?;
    }
    ended(what, command, child.wait()?, begun)?;
    Ok(counted)
}

/// A program to be run in the root.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// The first line that a program answers to a question about its version.
pub(crate) fn version(program: &str, question: &[&str]) -> Option<String> {
    let output = Command::new(program).args(question).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().filter(|_| output.status.success())?;
    Some(line.trim().to_owned())
}

fn announce(what: &str, command: &Command) -> Instant {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    say(&format!("{what}: {}", words.join(" ")));
    Instant::now()
}

fn unstarted(command: &Command) -> String {
    format!("{} cannot be started", command.get_program().display())
}

fn ended(what: &str, command: &Command, status: ExitStatus, begun: Instant) -> anyhow::Result<()> {
    if !status.success() {
        let program = command.get_program().display();
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
    does(program, &["--version"])
}

/// Whether a program is there and does something quietly.
pub(crate) fn does(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}
