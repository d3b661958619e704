//! Objects that do not decode: what could still be read of them stands closed in its place (R3).

use std::rc::Rc;

use model::{host::HostPattern, place::MatchType};
use resources::{
    kinds::Kind,
    problem::FieldPath,
    snapshot::{SalvagedPath, Undecodable},
};

use crate::{
    codes::Code,
    findings::Findings,
    host_text,
    place::{self, Placed},
    preflight::Judged,
    wish::{Backend, Unread, Wish, WishedRoute},
};

/// Stages everything that could be read.
pub(crate) fn stage(wish: &mut Wish<'_>, undecodable: &Undecodable, judged: &Rc<Judged>) {
    let Undecodable { problems, salvaged } = undecodable;
    for problem in problems {
        let diagnostic = wish.site().problem(problem);
        wish.findings.push(diagnostic);
    }
    wish.may_restrict = true;
    wish.unread_modules.extend_from_slice(&salvaged.modules);
    let kind = wish.object.kind.clone();
    // A Domain or TLS edge means its hosts as a whole.
    let has_paths = kind == Kind::Ingress.name() || kind == Kind::HttpsEdge.name();
    if salvaged.hosts_unreadable {
        wish.unread = Unread::Hosts;
    }
    for host in &salvaged.hosts {
        let Some(pattern) = HostPattern::parse(&host.host)
            .ok()
            .or_else(|| host_text::meant(&host.host))
        else {
            wish.unread = Unread::Hosts;
            continue;
        };
        let unclear = has_paths && (host.paths_unreadable || host.paths.is_empty());
        if unclear {
            wish.unread = wish.unread.max(Unread::Paths);
        }
        let places = host
            .paths
            .iter()
            .map(|path| (salvaged_place(path, &kind), false));
        // What cannot be told may be any path: the whole host, behind what others declare there.
        let everything = Placed {
            place: place::everything(),
            fault: None,
            is_guess: true,
        };
        let rest = unclear.then_some((everything, true));
        let wished = wish.host(pattern, &FieldPath::root());
        let routes = places.chain(rest).map(|(placed, is_default)| WishedRoute {
            place: placed.place,
            is_guess: placed.is_guess,
            field: FieldPath::root(),
            is_default,
            judged: Rc::clone(judged),
            backend: Backend::default(),
            findings: Findings::default(),
        });
        wished.routes.extend(routes);
    }
    let message = match wish.unread {
        Unread::Nothing => return,
        Unread::Paths => {
            "not all paths of this object could be read, so nothing else opens or changes on its hosts"
        }
        Unread::Hosts => {
            "not all hosts of this object could be read, so hosts of its namespace that are not open yet stay closed"
        }
    };
    let remedy = "mend what else is reported about this object";
    let diagnostic = wish
        .site()
        .finding(Code::Unreadable, &FieldPath::root(), message, remedy);
    wish.findings.push(diagnostic);
}

/// Where a salvaged path stands. A path type that is none means the most that it could.
fn salvaged_place(path: &SalvagedPath, kind: &str) -> Placed {
    let (match_type, expressions) = match path.path_type.as_deref() {
        Some("Exact" | "exact_path") => (MatchType::Exact, false),
        Some("Prefix") => (MatchType::ElementPrefix, false),
        Some("path_prefix") => (MatchType::StringPrefix, false),
        _ if kind == Kind::HttpsEdge.name() => (MatchType::StringPrefix, false),
        _ => (MatchType::ElementPrefix, true),
    };
    place::place(match_type, &path.path, expressions)
}
