//! `policy` and the traffic policies: carried as one JSON document, judged by the edge.

use model::module::{ModuleKind, TrafficPolicy};

use crate::preflight::{Judge, PolicyDocument, Written};

/// A policy that is switched off does nothing and is left out.
pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: Option<&Written<'_, PolicyDocument>>,
) -> Option<TrafficPolicy> {
    let written = written.filter(|written| written.content.enabled)?;
    judge.names(ModuleKind::TrafficPolicy, written, &written.content);
    Some(TrafficPolicy {
        enabled: true,
        document: written.content.document.to_string(),
    })
}
