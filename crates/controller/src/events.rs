//! Transitions between two statuses: what is worth a line (R8). Pure, so that "none at rest" is
//! a property and not a hope.

use std::collections::BTreeMap;

use model::{
    diagnostic::Severity,
    status::{Reason, RouteState, RouteStatus, Status},
};
use serde::Serialize;

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The host; empty for a finding that belongs to no route.
    pub host: String,
    /// The path; empty likewise.
    pub path: String,
    /// `exact`, `prefix`, `string_prefix`; empty likewise.
    pub path_type: String,
    /// The state before; null when it was not known.
    pub from: Option<RouteState>,
    /// The state now; null when the route is gone.
    pub to: Option<RouteState>,
    /// The generation in force now.
    pub serving: Option<u64>,
    /// Why.
    pub reasons: Vec<Reason>,
}

impl Event {
    /// Whether somebody must act.
    #[must_use]
    pub fn severity(&self) -> Severity {
        let wrong = self.reasons.iter().any(|r| r.severity == Severity::Error);
        if wrong {
            Severity::Error
        } else {
            Severity::Warning
        }
    }
}

type Key<'a> = (&'a str, &'a str, &'a str);

fn by_key(status: &Status) -> BTreeMap<Key<'_>, &RouteStatus> {
    status
        .routes
        .iter()
        .map(|r| ((r.host.as_str(), r.path.as_str(), r.path_type.as_str()), r))
        .collect()
}

/// A reason's code, object and message: not where it stands.
type Words<'a> = (&'a str, &'a str, &'a str);

/// What differs between two routes that a person must be told.
fn told(route: &RouteStatus) -> (RouteState, Option<u64>, Vec<Words<'_>>) {
    let reasons = route
        .reasons
        .iter()
        .map(|r| (r.code.as_str(), r.object.as_str(), r.message.as_str()));
    (
        route.state,
        route.serving.map(|g| g.generation),
        reasons.collect(),
    )
}

/// Every transition from one status to the next, in the order of the table.
#[must_use]
pub fn transitions(before: &Status, after: &Status) -> Vec<Event> {
    let old = by_key(before);
    let new = by_key(after);
    let mut events = Vec::new();
    for (key, route) in &new {
        let was = old.get(key);
        if was.is_none_or(|was| told(was) != told(route)) {
            events.push(event(route, was.map(|r| r.state), Some(route.state)));
        }
    }
    for (key, route) in &old {
        if !new.contains_key(key) {
            let mut gone = event(route, Some(route.state), None);
            gone.reasons.clear();
            gone.serving = None;
            events.push(gone);
        }
    }
    for finding in &after.diagnostics {
        let same = |r: &&Reason| {
            r.code == finding.code && r.object == finding.object && r.message == finding.message
        };
        if before.diagnostics.iter().find(same).is_none() {
            events.push(Event {
                host: String::new(),
                path: String::new(),
                path_type: String::new(),
                from: None,
                to: None,
                serving: None,
                reasons: vec![finding.clone()],
            });
        }
    }
    events
}

fn event(route: &RouteStatus, from: Option<RouteState>, to: Option<RouteState>) -> Event {
    Event {
        host: route.host.clone(),
        path: route.path.clone(),
        path_type: route.path_type.clone(),
        from,
        to,
        serving: route.serving.map(|g| g.generation),
        reasons: route.reasons.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: RouteState, serving: Option<u64>) -> Status {
        let route = RouteStatus {
            host: "a.example".into(),
            path: "/".into(),
            path_type: "prefix".into(),
            state,
            since: None,
            serving: serving.map(|generation| model::status::Generation { generation }),
            wanted: None,
            modules: Vec::new(),
            backend: None,
            owner: None,
            reasons: Vec::new(),
        };
        Status {
            routes: vec![route],
            diagnostics: Vec::new(),
        }
    }

    #[test]
    fn only_what_changed_is_told_and_a_route_that_goes_is_told_once() {
        let closed = status(RouteState::Closed, None);
        let open = status(RouteState::Open, Some(1));
        assert_eq!(transitions(&open, &open), []);
        let opened = transitions(&closed, &open);
        assert_eq!(opened.len(), 1);
        assert_eq!(
            (opened[0].from, opened[0].to),
            (Some(RouteState::Closed), Some(RouteState::Open))
        );
        assert_eq!(
            transitions(&open, &status(RouteState::Open, Some(2))).len(),
            1
        );
        let gone = transitions(&open, &Status::default());
        assert_eq!((gone[0].from, gone[0].to), (Some(RouteState::Open), None));
        assert_eq!(transitions(&Status::default(), &Status::default()), []);
    }
}
