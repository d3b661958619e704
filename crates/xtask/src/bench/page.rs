//! docs/performance.md: the figures, where they come from, and what they mean.

use std::{fmt::Write as _, fs, process::Command};

use super::{
    check::{AIM_SECONDS, INGRESSES, SECRETS, Times},
    rounds::{Cost, Outcome, median},
    which,
};
use crate::run::root;

const HEAD: &str = include_str!("head.md");
const TAIL: &str = include_str!("tail.md");

/// The whole page.
pub(super) fn page(outcomes: &[Outcome], check: &Times) -> anyhow::Result<String> {
    let mut page = String::from(HEAD);
    writeln!(page, "\n{COLUMNS}")?;
    for outcome in outcomes {
        writeln!(page, "{}", row(outcome))?;
    }
    let (processor, elapsed) = (
        median(check.processor.iter().copied()),
        median(check.elapsed.iter().copied()),
    );
    let missed = if processor > AIM_SECONDS {
        ", missed"
    } else {
        ""
    };
    writeln!(
        page,
        "\n`portcullis check` on {INGRESSES} Ingresses and {SECRETS} Secrets takes **{processor:.1} s** of processor time, {elapsed:.1} s by the \
         clock (median of {}; aim: {AIM_SECONDS:.0} s{missed}).",
        check.processor.len(),
    )?;
    writeln!(page, "\n{TAIL}\n## Measured on\n\n{}", machine())?;
    Ok(page)
}

const COLUMNS: &str = "\
| Load | Ratio | Rounds | Aim | Ours, µs | in the kernel | nginx, µs | in the kernel | Requests/s, ours | nginx |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// One load as a row of the table.
pub(super) fn row(outcome: &Outcome) -> String {
    let ratios = outcome.ratios();
    let ratio = median(ratios.iter().copied());
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let aim = outcome.load.aim.map_or_else(String::new, |aim| {
        let missed = if ratio > aim { ", missed" } else { "" };
        format!("{aim:.1}{missed}")
    });
    let of = |costs: &[Cost], what: fn(&Cost) -> f64| median(costs.iter().map(what));
    let side = |costs: &[Cost]| {
        let (micros, kernel) = (of(costs, |cost| cost.micros), of(costs, |cost| cost.kernel));
        format!("{micros:.1} | {:.0} %", kernel * 100.0)
    };
    format!(
        "| {} | **{ratio:.2}** | {least:.2}–{most:.2} | {aim} | {} | {} | {:.0} | {:.0} |",
        outcome.load.name,
        side(&outcome.ours),
        side(&outcome.rival),
        of(&outcome.ours, |cost| cost.rate),
        of(&outcome.rival, |cost| cost.rate),
    )
}

/// What was measured with, as a list.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<_> = cpu
        .lines()
        .filter_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']))
        .collect();
    let model = models.first().copied().unwrap_or("unknown processor");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    // Ours is two at most: what is above comes from others, and widens the rounds.
    let mut list = format!(
        "- {model}, {} cores\n- Commit: {}\n- Load average at the end: {load}\n",
        models.len(),
        commit()
    );
    for (what, program, argument) in [
        ("Kernel", "uname", "-sr"),
        ("Compiler", "rustc", "--version"),
        ("nginx", "nginx", "-v"),
        ("wrk", "wrk", "-v"),
        ("h2load", "h2load", "--version"),
    ] {
        let _ = writeln!(list, "- {what}: {}", version(program, argument));
    }
    list
}

/// The commit that was measured.
fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(root())
        .output();
    output.map_or_else(
        |_| String::from("unknown"),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// The first line that a program says of itself, on either stream.
fn version(program: &str, argument: &str) -> String {
    let Some(program) = which(program) else {
        return String::from("unknown");
    };
    let Ok(output) = Command::new(program).arg(argument).output() else {
        return String::from("unknown");
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}
