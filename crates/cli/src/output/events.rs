//! One line per transition, for people or as JSON.

use controller::events::Event;
use model::status::RouteState;

use super::table::{BOLD, DIM, reason_lines, style};

/// The lines of an event for people: what changed, then why.
pub(crate) fn lines(event: &Event, at: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if event.host.is_empty() {
        lines.push(format!("{DIM}{at}{DIM:#}  {BOLD}note{BOLD:#}"));
    } else {
        let path = match event.path_type.as_str() {
            "exact" => format!("={}", event.path),
            "string_prefix" => format!("{}*", event.path),
            _ => event.path.clone(),
        };
        let state = event.to.map_or("gone", RouteState::name);
        let colour = event.to.map(style).unwrap_or_default();
        let before = match event.from {
            Some(from) if Some(from) != event.to => format!(" (was {})", from.name()),
            _ => String::new(),
        };
        let serving = event
            .serving
            .map_or(String::new(), |n| format!(", serves generation {n}"));
        lines.push(format!(
            "{DIM}{at}{DIM:#}  {colour}{state:<8}{colour:#}  {}{path}{before}{serving}",
            event.host
        ));
    }
    lines.extend(event.reasons.iter().flat_map(reason_lines));
    lines
}

/// The event as one line of JSON.
pub(crate) fn json(event: &Event, at: &str) -> String {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("at".to_owned(), at.into());
    }
    value.to_string()
}
