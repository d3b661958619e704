//! Every metric, declared once. `docs/reference/metrics.md` lists the same names, and a test
//! holds the two together.

use std::sync::{Arc, Mutex, PoisonError};

use model::status::RouteState;
use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, MetricEncoder, NoLabelSet, text,
    },
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge},
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
        for state in [
            RouteState::Open,
            RouteState::Held,
            RouteState::Closed,
            RouteState::Removing,
        ] {
            let label = StateLabel {
                state: StateValue(state.name()),
            };
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
    pub value: Value,
}

/// A figure's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// How many were at most how large.
    Histogram {
        /// All added up.
        sum: f64,
        /// Upper bounds and how many fell between the bound before and this one; the last bound
        /// is infinite.
        buckets: Vec<(f64, u64)>,
    },
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $metric:literal, $kind:ident, $help:literal;)*) => {
        /// The figures of the data plane, which counts per worker without locks and adds up when
        /// read. Counters get `_total` behind their name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Figure {
            $($(#[$doc])* $name,)*
        }

        impl Figure {
            const ALL: &[Self] = &[$(Self::$name,)*];

            const fn describe(self) -> (&'static str, MetricType, &'static str) {
                match self {
                    $(Self::$name => ($metric, MetricType::$kind, $help),)*
                }
            }
        }
    };
}

figures! {
    /// With the labels verdict and reason.
    Requests = "portcullis_requests", Counter, "Requests by verdict and reason";
    /// Until the last byte of the answer.
    RequestDuration = "portcullis_request_duration_seconds", Histogram, "How long requests took";
    /// Now.
    RequestsInFlight = "portcullis_requests_in_flight", Gauge, "Requests being answered now";
    /// Now.
    Connections = "portcullis_connections", Gauge, "Open client connections";
    /// Ever.
    ConnectionsAccepted = "portcullis_connections_accepted", Counter, "Client connections accepted";
    /// Too many were open.
    ConnectionsRejected = "portcullis_connections_rejected", Counter,
        "Client connections closed at once because too many were open";
    /// Refused ones too.
    HandshakeFailures = "portcullis_handshake_failures", Counter,
        "TLS handshakes that failed or were refused";
    /// R12.
    Cut = "portcullis_cut", Counter,
        "Responses and upgraded connections that were ended: revoked, or too slow";
    /// The client went away.
    Abandoned = "portcullis_abandoned", Counter,
        "Requests whose client went away before they were answered";
    /// From the plain port.
    Redirects = "portcullis_redirects", Counter, "Plain HTTP requests that were sent to HTTPS";
    /// R11.
    Panics = "portcullis_panics", Counter, "Panics contained to one request";
    /// Bodies and tunnels.
    BytesReceived = "portcullis_received_bytes", Counter, "Bytes of request bodies and tunnels";
    /// Bodies and tunnels.
    BytesSent = "portcullis_sent_bytes", Counter, "Bytes of answers and tunnels";
    /// Tries included.
    UpstreamConnects = "portcullis_upstream_connects", Counter, "Connections made to backends";
    /// Of those.
    UpstreamFailures = "portcullis_upstream_failures", Counter, "Connections to backends that failed";
    /// The kept connection had ended.
    UpstreamRetries = "portcullis_upstream_retries", Counter,
        "Requests sent again because a kept connection had ended";
    /// Now.
    UpstreamIdle = "portcullis_upstream_idle", Gauge, "Idle connections to backends";
    /// The log was full.
    AccessLogDropped = "portcullis_access_log_dropped", Counter,
        "Access log lines that were not written because too many waited";
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
            let (name, kind, help) = figure.describe();
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for sample in samples.iter().filter(|s| s.figure == *figure) {
                encode(&mut metric, kind, sample)?;
            }
        }
        Ok(())
    }
}

fn encode(
    metric: &mut MetricEncoder<'_>,
    kind: MetricType,
    sample: &Sample,
) -> Result<(), std::fmt::Error> {
    if sample.labels.is_empty() {
        return encode_value(metric, kind, &sample.value);
    }
    encode_value(
        &mut metric.encode_family(&sample.labels)?,
        kind,
        &sample.value,
    )
}

fn encode_value(
    metric: &mut MetricEncoder<'_>,
    kind: MetricType,
    value: &Value,
) -> Result<(), std::fmt::Error> {
    match (value, kind) {
        (Value::Number(number), MetricType::Gauge) => {
            metric.encode_gauge(&i64::try_from(*number).unwrap_or(i64::MAX))
        }
        (Value::Number(number), _) => metric.encode_counter::<NoLabelSet, _, u64>(number, None),
        (Value::Histogram { sum, buckets }, _) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
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
        let ControllerMetrics {
            edge_writes,
            edge_reads,
            events,
            status_writes,
            routes,
        } = metrics.controller.clone();
        {
            let mut registry = metrics.lock();
            registry.register(
                "portcullis_edge_writes",
                "Commands sent to the edge",
                edge_writes,
            );
            registry.register(
                "portcullis_edge_reads",
                "Reads sent to the edge",
                edge_reads,
            );
            registry.register(
                "portcullis_events",
                "Events told, on transitions only",
                events,
            );
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
        metrics
            .controller
            .set_routes(|state| usize::from(state == RouteState::Open));
        metrics.add_source(Arc::new(|| {
            vec![
                Sample {
                    figure: Figure::Requests,
                    labels: vec![("verdict", "refused".into()), ("reason", "closed".into())],
                    value: Value::Number(3),
                },
                Sample {
                    figure: Figure::RequestDuration,
                    labels: Vec::new(),
                    value: Value::Histogram {
                        sum: 1.5,
                        buckets: vec![(0.5, 1), (f64::MAX, 2)],
                    },
                },
            ]
        }));
        let text = metrics.render();
        for line in [
            "portcullis_edge_writes_total 1",
            "portcullis_edge_reads_total 0",
            "portcullis_routes{state=\"open\"} 1",
            "portcullis_routes{state=\"held\"} 0",
            "portcullis_request_duration_seconds_bucket{le=\"0.5\"} 1",
            "portcullis_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "portcullis_request_duration_seconds_count 3",
            "portcullis_requests_total{verdict=\"refused\",reason=\"closed\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in:\n{text}");
        }
    }
}
