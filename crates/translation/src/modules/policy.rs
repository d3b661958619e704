//! `policy` and the traffic policies: carried as one JSON document, judged by the edge. One that
//! is switched off does nothing, and never comes here.

use model::module::TrafficPolicy;

use crate::preflight::{Judge, PolicyDocument, Written};

pub(crate) fn judge(
    _: &mut Judge<'_, '_>,
    written: &Written<'_, PolicyDocument>,
) -> Option<TrafficPolicy> {
    let document = written.content.document.to_string();
    Some(TrafficPolicy {
        enabled: true,
        document,
    })
}
