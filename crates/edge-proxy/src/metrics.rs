//! What happened, in numbers: counters that each worker writes alone and anybody may add up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use routing::refusal::Refusal;

/// A counter that one thread writes: an addition without a lock, and without a locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Upper bounds of the latency histogram's buckets, in microseconds; the last has none.
pub const LATENCY_BUCKETS_US: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// A worker's numbers.
#[derive(Debug)]
pub(crate) struct WorkerMetrics {
    passed: Counter,
    /// In the order of [`Refusal::ALL`].
    refused: Vec<Counter>,
    latency: [Counter; LATENCY_BUCKETS_US.len() + 1],
    latency_sum_us: Counter,
    pub(crate) connections_accepted: Counter,
    pub(crate) connections_rejected: Counter,
    pub(crate) connections_open: Counter,
    pub(crate) handshakes_failed: Counter,
    pub(crate) requests_in_flight: Counter,
    pub(crate) cut: Counter,
    pub(crate) abandoned: Counter,
    pub(crate) redirects: Counter,
    pub(crate) panics: Counter,
    pub(crate) bytes_received: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) upstream_connects: Counter,
    pub(crate) upstream_failures: Counter,
    pub(crate) upstream_retries: Counter,
    pub(crate) upstream_idle: Counter,
    pub(crate) log_lines_dropped: Counter,
}

impl WorkerMetrics {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            passed: Counter::default(),
            refused: Refusal::ALL.iter().map(|_| Counter::default()).collect(),
            latency: Default::default(),
            latency_sum_us: Counter::default(),
            connections_accepted: Counter::default(),
            connections_rejected: Counter::default(),
            connections_open: Counter::default(),
            handshakes_failed: Counter::default(),
            requests_in_flight: Counter::default(),
            cut: Counter::default(),
            abandoned: Counter::default(),
            redirects: Counter::default(),
            panics: Counter::default(),
            bytes_received: Counter::default(),
            bytes_sent: Counter::default(),
            upstream_connects: Counter::default(),
            upstream_failures: Counter::default(),
            upstream_retries: Counter::default(),
            upstream_idle: Counter::default(),
            log_lines_dropped: Counter::default(),
        })
    }

    /// Counts a request that is done; how long a tunnel was open is no latency.
    pub(crate) fn request(&self, refusal: Option<Refusal>, took: Option<Duration>) {
        match refusal {
            None => self.passed.add(1),
            Some(reason) => {
                if let Some(counter) = self.refused.get(reason as usize) {
                    counter.add(1);
                }
            }
        }
        let Some(took) = took else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BUCKETS_US.partition_point(|bound| *bound < micros);
        self.latency[bucket].add(1);
        self.latency_sum_us.add(micros);
    }
}

/// The sum over all workers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Requests that a backend answered.
    pub passed: u64,
    /// Requests that were refused, by reason; reasons that did not occur are left out.
    pub refused: Vec<(Refusal, u64)>,
    /// Requests by how long they took; as many as [`LATENCY_BUCKETS_US`] and one for all others.
    pub latency: Vec<u64>,
    /// How long they took together, in microseconds.
    pub latency_sum_us: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections closed at once because there are too many.
    pub connections_rejected: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// TLS handshakes that failed or were refused.
    pub handshakes_failed: u64,
    /// Requests in flight now.
    pub requests_in_flight: u64,
    /// Requests in flight and tunnels that were ended: revoked, or too slow.
    pub cut: u64,
    /// Requests whose client went away before they were answered.
    pub abandoned: u64,
    /// Requests on the plain port that were sent to HTTPS.
    pub redirects: u64,
    /// Panics contained.
    pub panics: u64,
    /// Bytes of request bodies and tunnels received from clients.
    pub bytes_received: u64,
    /// Bytes of answers and tunnels sent to clients.
    pub bytes_sent: u64,
    /// Connections made to backends, tries included.
    pub upstream_connects: u64,
    /// Those that failed.
    pub upstream_failures: u64,
    /// Requests sent again because a kept connection had ended.
    pub upstream_retries: u64,
    /// Idle connections to backends now.
    pub upstream_idle: u64,
    /// Access log lines that were not written because too many waited.
    pub log_lines_dropped: u64,
}

impl Metrics {
    pub(crate) fn sum<'w>(workers: impl Iterator<Item = &'w WorkerMetrics>) -> Self {
        let mut sum = Self {
            latency: vec![0; LATENCY_BUCKETS_US.len() + 1],
            ..Self::default()
        };
        let mut refused = vec![0; Refusal::ALL.len()];
        for worker in workers {
            sum.passed += worker.passed.get();
            sum.latency
                .iter_mut()
                .zip(&worker.latency)
                .for_each(|(all, one)| *all += one.get());
            refused
                .iter_mut()
                .zip(&worker.refused)
                .for_each(|(all, one)| *all += one.get());
            sum.latency_sum_us += worker.latency_sum_us.get();
            sum.connections_accepted += worker.connections_accepted.get();
            sum.connections_rejected += worker.connections_rejected.get();
            sum.connections_open += worker.connections_open.get();
            sum.handshakes_failed += worker.handshakes_failed.get();
            sum.requests_in_flight += worker.requests_in_flight.get();
            sum.cut += worker.cut.get();
            sum.abandoned += worker.abandoned.get();
            sum.redirects += worker.redirects.get();
            sum.panics += worker.panics.get();
            sum.bytes_received += worker.bytes_received.get();
            sum.bytes_sent += worker.bytes_sent.get();
            sum.upstream_connects += worker.upstream_connects.get();
            sum.upstream_failures += worker.upstream_failures.get();
            sum.upstream_retries += worker.upstream_retries.get();
            sum.upstream_idle += worker.upstream_idle.get();
            sum.log_lines_dropped += worker.log_lines_dropped.get();
        }
        sum.refused = Refusal::ALL
            .iter()
            .copied()
            .zip(refused)
            .filter(|(_, count)| *count > 0)
            .collect();
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_of_its_own() {
        let worker = WorkerMetrics::new();
        for reason in Refusal::ALL {
            worker.request(Some(*reason), Some(Duration::from_millis(3)));
        }
        worker.request(None, Some(Duration::from_secs(60)));
        let sum = Metrics::sum([&*worker, &*worker].into_iter());
        assert_eq!(
            sum.refused,
            Refusal::ALL
                .iter()
                .map(|reason| (*reason, 2))
                .collect::<Vec<_>>()
        );
        assert_eq!(sum.passed, 2);
        assert_eq!(
            sum.latency[3],
            2 * Refusal::ALL.len() as u64,
            "3 ms is at most 5 ms"
        );
        assert_eq!(sum.latency.last(), Some(&2));
    }
}
