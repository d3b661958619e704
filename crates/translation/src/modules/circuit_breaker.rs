//! `circuitBreaker`: zero means the edge's default, which is written out so that equal
//! declarations are equal.

use model::module::CircuitBreaker;
use resources::module_set as written;

use crate::preflight::{Judge, Written};

const DEFAULT_SECONDS: u32 = 10;
const DEFAULT_BUCKETS: u32 = 10;
const DEFAULT_VOLUME: u32 = 20;
const DEFAULT_MILLIONTHS: u32 = 500_000;

pub(crate) fn judge(
    _: &mut Judge<'_, '_>,
    written: &Written<'_, &written::CircuitBreaker>,
) -> Option<CircuitBreaker> {
    let written::CircuitBreaker {
        tripped_duration,
        rolling_window,
        num_buckets,
        volume_threshold,
        error_threshold_percentage,
    } = written.content;
    let or = |value, default| if value == 0 { default } else { value };
    // The resource's own rules hold the ranges.
    Some(CircuitBreaker {
        enabled: true,
        tripped_duration: or(tripped_duration.whole_secs(), DEFAULT_SECONDS),
        rolling_window: or(rolling_window.whole_secs(), DEFAULT_SECONDS),
        num_buckets: num_buckets.unwrap_or(DEFAULT_BUCKETS),
        volume_threshold: or(*volume_threshold, DEFAULT_VOLUME),
        error_threshold_millionths: or(error_threshold_percentage.millionths(), DEFAULT_MILLIONTHS),
    })
}
