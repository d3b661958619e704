//! The reference page of metrics, printed from the declarations and held against them word for
//! word. `PORTCULLIS_REWRITE=1 cargo test -p telemetry --test reference` rewrites it.

use std::{fmt::Write as _, fs, sync::Arc};

use telemetry::metrics::Metrics;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/metrics.md"
);

const HEAD: &str = "\
# Metrics

Served at `/metrics` of the admin listener (`--admin`) in the OpenMetrics text format. `up` has all of them, `edge` and `controller` their
own. At rest none of the controller's counters moves: nothing is written, told or reported when nothing has changed (R9).

| name | kind | labels | meaning |
| --- | --- | --- | --- |
";

const TAIL: &str = "
A request is counted once, when it ends. The reasons of `portcullis_requests_total` are the labels in [refusals.md](refusals.md); its
verdicts are those of the access log ([edge.md](edge.md)).
";

/// The labels of the families that have some.
fn labels(name: &str) -> &'static str {
    match name {
        "portcullis_requests_total" => "`verdict`, `reason`",
        "portcullis_routes" => "`state`",
        _ => "",
    }
}

#[test]
fn every_metric_has_its_line() {
    let metrics = Metrics::new();
    metrics.add_source(Arc::new(Vec::new));
    let text = metrics.render();
    let mut page = HEAD.to_owned();
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').expect("a name, then its help").1;
        }
        let Some(rest) = line.strip_prefix("# TYPE ") else {
            continue;
        };
        let (name, kind) = rest.split_once(' ').expect("a name, then its kind");
        let name = match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        };
        let help = help.trim_end_matches('.');
        writeln!(page, "| `{name}` | {kind} | {} | {help} |", labels(&name)).expect("a string");
    }
    page.push_str(TAIL);
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        fs::write(PAGE, &page).expect("the page can be written");
    }
    assert!(
        fs::read_to_string(PAGE).unwrap_or_default() == page,
        "{PAGE} is out of date: PORTCULLIS_REWRITE=1 rewrites it"
    );
}
