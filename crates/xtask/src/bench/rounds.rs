//! Interleaved rounds: each side once, in turns who is first, on the same core.

use std::{fs, time::Instant};

use anyhow::Context as _;

use super::{
    loads::{self, Load},
    servers::{Server, Sides},
};
use crate::run::say;

/// What a load costs both sides.
pub(super) struct Outcome {
    pub(super) load: &'static Load,
    pub(super) ours: Vec<Cost>,
    pub(super) rival: Vec<Cost>,
}

/// What a request cost in one run.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    /// Microseconds of processor time.
    pub(super) micros: f64,
    /// The part of it that is spent in the kernel, from 0 to 1.
    pub(super) kernel: f64,
    /// Requests a second.
    pub(super) rate: f64,
}

impl Outcome {
    /// Our cost to nginx's, round by round.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let rounds = self.ours.iter().zip(&self.rival);
        rounds
            .map(|(ours, rival)| ours.micros / rival.micros)
            .collect()
    }
}

pub(super) fn measure(
    load: &'static Load,
    sides: &Sides,
    rounds: usize,
    seconds: u32,
) -> anyhow::Result<Outcome> {
    let find = |side: [Server; 2]| {
        let server = side.into_iter().find(|server| server.port == load.port);
        server.context("both sides have both ports")
    };
    let (ours, rival) = (find(sides.ours)?, find(sides.rival)?);
    let mut outcome = Outcome {
        load,
        ours: Vec::new(),
        rival: Vec::new(),
    };
    // Connections to the backend, buffers, branch predictors.
    for server in [ours, rival] {
        loads::make(load, server.number, 1)?;
    }
    for round in 0..rounds {
        let mut run = |is_ours: bool| -> anyhow::Result<()> {
            let (side, costs) = if is_ours {
                (ours, &mut outcome.ours)
            } else {
                (rival, &mut outcome.rival)
            };
            costs.push(cost(load, side, seconds)?);
            Ok(())
        };
        let ours_first = round % 2 == 0;
        run(ours_first)?;
        run(!ours_first)?;
    }
    say(&format!("{}: {rounds} rounds done", load.name));
    Ok(outcome)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
fn cost(load: &Load, server: Server, seconds: u32) -> anyhow::Result<Cost> {
    let pid = server.process;
    let before = (run_nanos(pid)?, ticks(pid)?);
    let begun = Instant::now();
    let requests = loads::make(load, server.number, seconds)? as f64;
    let elapsed = begun.elapsed().as_secs_f64();
    let spent = run_nanos(pid)? - before.0;
    let (user, kernel) = ticks(pid)?;
    let (user, kernel) = ((user - before.1.0) as f64, (kernel - before.1.1) as f64);
    Ok(Cost {
        micros: spent as f64 / 1000.0 / requests,
        kernel: kernel / (user + kernel).max(1.0),
        rate: requests / elapsed,
    })
}

/// Nanoseconds that all threads of a process have run, to the nanosecond.
fn run_nanos(pid: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().unwrap_or_default();
        total += first.parse::<u64>()?;
    }
    Ok(total)
}

/// Clock ticks in user code and in the kernel: coarse, but the kernel tells them apart.
fn ticks(pid: u32) -> anyhow::Result<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program stands in brackets and may hold anything.
    let (_, numbers) = text.rsplit_once(')').context("a process has a name")?;
    let mut numbers = numbers.split_whitespace().skip(11).map(str::parse);
    let mut next = || anyhow::Ok(numbers.next().context("a process has times")??);
    Ok((next()?, next()?))
}

pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
