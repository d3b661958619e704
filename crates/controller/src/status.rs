//! From what was declared and how things stand to what is reported (R8). Pure.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::state::{Edge, EdgeState, Route};
use model::{
    declaration::{Declaration, DeclaredRoute},
    diagnostic::{Diagnostic, Severity},
    id::RouteId,
    module::ModuleKind,
    place::Match,
    status::{Generation, Reason, RouteState, RouteStatus, Status},
    time::Timestamp,
};
use plan::{Note, Report, RouteKey, RouteReport};
use resources::problem::shown;

/// The status of everything: each declared or withdrawn route, by host and rank, and the findings
/// that belong to none.
#[must_use]
pub fn status(
    declared: &Declaration,
    report: &Report,
    edge: &EdgeState,
    format: impl Fn(Timestamp) -> String,
) -> Status {
    let declared_routes: BTreeMap<RouteKey, &DeclaredRoute> = declared
        .hosts
        .iter()
        .flat_map(|(host, on_host)| {
            on_host
                .routes
                .iter()
                .map(|(place, route)| ((host.clone(), place.clone()), route))
        })
        .collect();
    let at_edge: BTreeMap<&RouteId, (&Edge, &Route)> = edge
        .edges
        .values()
        .flat_map(|edge| {
            edge.routes
                .iter()
                .map(move |(id, route)| (id, (&**edge, route)))
        })
        .collect();
    let mut keys: Vec<&RouteKey> = report.routes.keys().collect();
    keys.sort_by(|(host_a, a), (host_b, b)| host_a.cmp(host_b).then_with(|| a.rank(b)));
    let routes = keys
        .into_iter()
        .map(|key| {
            let stands = &report.routes[key];
            let declared = declared_routes.get(key).copied();
            let mut status = route_status(key, stands, declared, &format);
            let held = stands
                .id
                .as_ref()
                .filter(|_| stands.state == RouteState::Held);
            if let Some((on, route)) = held.and_then(|id| at_edge.get(id)) {
                // What answers now is what people must see, not what cannot be applied (R8).
                status.modules = served_modules(on, route);
                status.backend = served_backend(edge, route).or(status.backend);
            }
            status
        })
        .collect();
    let of_routes: BTreeSet<&Diagnostic> = declared_routes
        .values()
        .flat_map(|route| route.reasons.iter())
        .collect();
    let diagnostics = declared
        .diagnostics
        .iter()
        .filter(|finding| !of_routes.contains(finding))
        .map(Reason::from)
        .collect();
    Status {
        routes,
        diagnostics,
    }
}

/// The names of the modules in force, as the resource has them.
fn served_modules(edge: &Edge, route: &Route) -> Vec<String> {
    let mut kinds = edge.demands().kinds();
    kinds.extend(route.modules.kinds());
    let mut names: Vec<String> = Vec::new();
    for name in kinds.into_iter().map(ModuleKind::name) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn served_backend(edge: &EdgeState, route: &Route) -> Option<String> {
    let backend = edge.backends.get(route.open_backend()?)?;
    backend.service.as_ref().map(ToString::to_string)
}

fn route_status(
    key: &RouteKey,
    stands: &RouteReport,
    declared: Option<&DeclaredRoute>,
    format: &impl Fn(Timestamp) -> String,
) -> RouteStatus {
    let (host, place) = key;
    let owner = stands
        .owner
        .as_ref()
        .or_else(|| declared.map(|route| &route.owner))
        .map(|owner| format!("{}/{}", owner.namespace, owner.name));
    let mut reasons: Vec<Reason> = declared
        .map(|route| route.reasons.iter().map(Reason::from).collect())
        .unwrap_or_default();
    let object = declared
        .map(|route| &route.owner)
        .or(stands.owner.as_ref())
        .map_or_else(|| host.to_string(), ToString::to_string);
    reasons.extend(
        stands
            .notes
            .iter()
            .filter_map(|note| note_reason(note, &object, stands.state, format)),
    );
    reasons.sort_by_key(|reason| reason.severity);
    RouteStatus {
        host: host.to_string(),
        path: place.path.clone(),
        path_type: place.match_type.name().to_owned(),
        state: match stands.state {
            // Declared again by another object, and refusing until its predecessor's time is over.
            RouteState::Removing if declared.is_some() => RouteState::Closed,
            state => state,
        },
        since: stands.since.map(format),
        serving: stands.serving.map(|generation| Generation { generation }),
        wanted: stands.wanted.map(|generation| Generation { generation }),
        modules: declared
            .map(|route| route.modules.clone())
            .unwrap_or_default(),
        backend: declared.and_then(|route| route.backend.clone()),
        owner,
        reasons,
    }
}

fn name((host, place): &(model::host::HostPattern, Match)) -> String {
    format!("{host} ({place})")
}

/// What a note says to a person, or nothing where the declaration's own findings say it.
#[expect(
    clippy::too_many_lines,
    reason = "one arm a note: a table in code, complete by the compiler"
)]
fn note_reason(
    note: &Note,
    object: &str,
    state: RouteState,
    format: &impl Fn(Timestamp) -> String,
) -> Option<Reason> {
    use Severity::{Error, Warning};
    let held = state == RouteState::Held;
    let (code, severity, message, remedy): (&str, Severity, String, &str) = match note {
        Note::Invalid | Note::Changing | Note::Unenforceable { kinds: _ } => return None,
        Note::Pending => (
            "pending",
            Warning,
            "it rests on something that has not been read yet; nothing changes until it has".into(),
            "see the findings on files that cannot be read",
        ),
        Note::RemovalPending => (
            "removal-pending",
            Warning,
            "its declaration is gone or could not be read; which of the two is not known yet"
                .into(),
            "mend the file that cannot be read",
        ),
        Note::Lost { missing, closes_at } => {
            let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
            let when = closes_at.map_or_else(|| "soon".to_owned(), format);
            (
                "lost",
                Error,
                format!(
                    "it still serves, but {} is gone; it closes at {when}",
                    names.join(", ")
                ),
                "bring the object back, or change the declaration so that it is not needed",
            )
        }
        Note::HoldEnds { closes_at } => (
            "hold-ends",
            Warning,
            format!(
                "it is held for a limited time and closes at {}",
                format(*closes_at)
            ),
            "mend the declaration before then",
        ),
        Note::HoldEnded => (
            "hold-ended",
            Error,
            "it was held for as long as --hold-limit allows and is closed now".into(),
            "mend the declaration",
        ),
        Note::AlsoRefuses => (
            "also-refuses",
            Warning,
            "while it is held, addresses that the newest valid IP policies refuse are refused too"
                .into(),
            "",
        ),
        Note::WaitsForBroader { broader } => (
            "waits-for-broader",
            if held { Warning } else { Error },
            format!(
                "it is withdrawn and stays closed until {} is as declared, which would answer its requests",
                name(broader)
            ),
            "see the reasons of that route",
        ),
        Note::WaitsForTombstone { until } => (
            "tombstone",
            Warning,
            format!(
                "it is withdrawn and refuses until {}, in case it comes back",
                format(*until)
            ),
            "",
        ),
        Note::WaitsForTermination { of } => (
            "waits-for-termination",
            Warning,
            format!("it is withdrawn and refuses for as long as {of} is being deleted"),
            "if that does not end, see which finalizers it still has",
        ),
        Note::WaitsForPredecessor { predecessor, until } => {
            let when = until.map_or_else(String::new, |until| format!(" until {}", format(until)));
            (
                "waits-for-predecessor",
                Warning,
                format!("{predecessor} declared it before, with another set; it is closed{when}"),
                "",
            )
        }
        Note::RefusedByEdge { message } => (
            "refused-by-edge",
            Error,
            format!("the edge refused it: {message}"),
            "change the declaration; it is not tried again before",
        ),
        Note::HostHeld { by } => (
            "host-held",
            Error,
            by.as_ref().map_or_else(
                || "its host belongs to an edge made through the API".to_owned(),
                |other| format!("its host belongs to the controller {other}"),
            ),
            "delete that edge, or declare another host",
        ),
        Note::DemandsKept { by } => (
            "demands-kept",
            Error,
            format!(
                "the host's TLS demands cannot change while {} is held",
                name(by)
            ),
            "see the reasons of that route",
        ),
        Note::DemandsUnknown => (
            "demands-unknown",
            Error,
            "the host's TLS demands are in error or have not been read".into(),
            "see the findings on mutual TLS and TLS termination of this host",
        ),
        Note::PolicyMissing { name } => (
            "policy-missing-at-edge",
            Error,
            format!("the edge has no IP policy {name}"),
            "make it at the edge, or name an IPPolicy object of the namespace",
        ),
        Note::BackendMissing { id } => (
            "backend-missing-at-edge",
            Error,
            format!("the edge has no backend {id} that this controller may use"),
            "delete the other owner's backend, or rename the Service",
        ),
        Note::UnreadableNearby => (
            "unreadable-nearby",
            Error,
            "something declared near it cannot be read, so nothing new opens here".into(),
            "mend the object or file that the findings name",
        ),
        Note::NarrowerNotStaged { narrower } => (
            "narrower-not-staged",
            Error,
            format!(
                "{} cannot be put in its place, and its requests would come here",
                name(narrower)
            ),
            "see the reasons of that route",
        ),
        Note::OnlyClosing => (
            "only-closing",
            Warning,
            "the files are still changing; until they are still, routes only close".into(),
            "",
        ),
    };
    Some(Reason {
        code: code.to_owned(),
        severity,
        message: shown(&message),
        object: object.to_owned(),
        field: None,
        file: None,
        line: None,
        remedy: (!remedy.is_empty()).then(|| remedy.to_owned()),
    })
}
