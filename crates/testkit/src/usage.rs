//! What a process used: memory at its highest, processor time. Linux, from `/proc`.

use std::{process::Child, time::Duration};

/// Clock ticks a second in `/proc/PID/stat` (fixed at 100 by the kernel's interface).
const TICKS: u64 = 100;

/// What a process used until it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Highest resident memory in KiB, as last seen.
    pub peak_kib: u64,
    /// User and system time, as last seen.
    pub cpu: Duration,
    /// The exit code.
    pub code: Option<i32>,
}

/// User and system time of a process so far.
#[must_use]
pub fn cpu(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; fields count from behind it (proc(5)).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

/// Highest resident memory of a process so far, in KiB.
#[must_use]
pub fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Watches a process until it ends.
///
/// # Panics
/// When it does not end within `limit`.
#[must_use]
pub fn watch(mut child: Child, limit: Duration) -> Usage {
    let mut usage = Usage::default();
    let pid = child.id();
    crate::wait::until("the process ends", limit, || {
        if let Some(kib) = peak_kib(pid) {
            usage.peak_kib = usage.peak_kib.max(kib);
        }
        if let Some(time) = cpu(pid) {
            usage.cpu = usage.cpu.max(time);
        }
        match child.try_wait() {
            Ok(Some(status)) => {
                usage.code = status.code();
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    });
    usage
}
