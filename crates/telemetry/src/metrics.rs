//! Every metric, declared once. `docs/reference/metrics.md` lists the same names, and a test
//! holds the two together.

use std::sync::{Arc, Mutex, PoisonError};

use model::status::RouteState;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric as _, text},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

/// The metrics of a controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerMetrics {
    /// Commands sent to the edge.
    pub edge_writes: Counter,
    /// Reads sent to the edge.
    pub edge_reads: Counter,
    /// Events told: transitions only.
    pub events: Counter,
    /// Statuses written: changes only.
    pub status_writes: Counter,
    routes: Family<StateLabel, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    state: StateValue,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct StateValue(&'static str);

impl EncodeLabelValue for StateValue {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

impl ControllerMetrics {
    /// Sets how many routes are in each state.
    pub fn set_routes(&self, count: impl Fn(RouteState) -> usize) {
        for state in [RouteState::Open, RouteState::Held, RouteState::Closed, RouteState::Removing] {
            let label = StateLabel { state: StateValue(state.name()) };
            let number = i64::try_from(count(state)).unwrap_or(i64::MAX);
            self.routes.get_or_create(&label).set(number);
        }
    }
}

/// One figure of the data plane at the moment of reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Which.
    pub figure: Figure,
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: u64,
}

/// The figures of the data plane, which counts per worker without locks and adds up when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// `portcullis_requests_total{verdict,reason}`
    Requests,
    /// `portcullis_request_duration_seconds`, as bucket counts, sum and count.
    RequestMicrosecondsSum,
    /// Requests at most as long as the label `le`, cumulative.
    RequestDurationBucket,
    /// `portcullis_connections{listener}`
    Connections,
    /// `portcullis_connections_accepted_total{listener}`
    ConnectionsAccepted,
    /// `portcullis_handshake_failures_total`
    HandshakeFailures,
    /// `portcullis_upstream_connects_total{result}`
    UpstreamConnects,
    /// `portcullis_revoked_total`
    Revoked,
    /// `portcullis_access_log_dropped_total`
    AccessLogDropped,
}

impl Figure {
    const ALL: [Self; 9] = [
        Self::Requests,
        Self::RequestMicrosecondsSum,
        Self::RequestDurationBucket,
        Self::Connections,
        Self::ConnectionsAccepted,
        Self::HandshakeFailures,
        Self::UpstreamConnects,
        Self::Revoked,
        Self::AccessLogDropped,
    ];

    const fn name_and_help(self) -> (&'static str, &'static str) {
        match self {
            Self::Requests => ("portcullis_requests", "Requests by verdict and reason"),
            Self::RequestMicrosecondsSum => {
                ("portcullis_request_microseconds", "Time spent on requests, added up")
            }
            Self::RequestDurationBucket => {
                ("portcullis_request_duration_bucket", "Requests at most as long as le, in seconds")
            }
            Self::Connections => ("portcullis_connections", "Open client connections"),
            Self::ConnectionsAccepted => {
                ("portcullis_connections_accepted", "Client connections accepted")
            }
            Self::HandshakeFailures => {
                ("portcullis_handshake_failures", "TLS handshakes that failed or were refused")
            }
            Self::UpstreamConnects => {
                ("portcullis_upstream_connects", "Connections to backends, by result")
            }
            Self::Revoked => {
                ("portcullis_revoked", "Responses and upgraded connections cut by a change (R12)")
            }
            Self::AccessLogDropped => {
                ("portcullis_access_log_dropped", "Access log lines dropped because the log was full")
            }
        }
    }
}

/// Where data-plane figures come from.
pub type Source = Arc<dyn Fn() -> Vec<Sample> + Send + Sync>;

struct Samples(Source);

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Samples")
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut samples = (self.0)();
        samples.sort_by(|a, b| (a.figure, &a.labels).cmp(&(b.figure, &b.labels)));
        for figure in Figure::ALL {
            let (name, help) = figure.name_and_help();
            let gauge = figure == Figure::Connections;
            let kind = if gauge {
                prometheus_client::metrics::MetricType::Gauge
            } else {
                prometheus_client::metrics::MetricType::Counter
            };
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for sample in samples.iter().filter(|s| s.figure == figure) {
                let family = metric.encode_family(&sample.labels)?;
                if gauge {
                    let value = i64::try_from(sample.value).unwrap_or(i64::MAX);
                    ConstGauge::new(value).encode(family)?;
                } else {
                    ConstCounter::new(sample.value).encode(family)?;
                }
            }
        }
        Ok(())
    }
}

/// All metrics of a process.
#[derive(Debug, Default)]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// The controller's.
    pub controller: ControllerMetrics,
}

impl Metrics {
    /// Metrics with the controller's registered.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self::default();
        let ControllerMetrics { edge_writes, edge_reads, events, status_writes, routes } =
            metrics.controller.clone();
        {
            let mut registry = metrics.lock();
            registry.register("portcullis_edge_writes", "Commands sent to the edge", edge_writes);
            registry.register("portcullis_edge_reads", "Reads sent to the edge", edge_reads);
            registry.register("portcullis_events", "Events told, on transitions only", events);
            registry.register(
                "portcullis_status_writes",
                "Statuses written, on changes only",
                status_writes,
            );
            registry.register("portcullis_routes", "Declared routes by state", routes);
        }
        metrics
    }

    /// Adds the data plane's figures.
    pub fn add_source(&self, source: Source) {
        self.lock().register_collector(Box::new(Samples(source)));
    }

    /// Everything in the OpenMetrics text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail; a failing collector leaves what was written.
        let _complete = text::encode(&mut out, &self.lock());
        out
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_rendered_under_its_name() {
        let metrics = Metrics::new();
        metrics.controller.edge_writes.inc();
        metrics.controller.set_routes(|state| usize::from(state == RouteState::Open));
        metrics.add_source(Arc::new(|| {
            vec![Sample {
                figure: Figure::Requests,
                labels: vec![("verdict", "refused".into()), ("reason", "closed".into())],
                value: 3,
            }]
        }));
        let text = metrics.render();
        for line in [
            "portcullis_edge_writes_total 1",
            "portcullis_edge_reads_total 0",
            "portcullis_routes{state=\"open\"} 1",
            "portcullis_routes{state=\"held\"} 0",
            "portcullis_requests_total{verdict=\"refused\",reason=\"closed\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in:\n{text}");
        }
    }
}
