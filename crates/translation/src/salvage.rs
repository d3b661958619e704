//! Objects that do not decode: what could still be read of them stands closed in its place (R3).

use std::rc::Rc;

use model::{
    host::HostPattern,
    place::{Match, MatchType},
};
use resources::{problem::FieldPath, snapshot::Undecodable};

use crate::{
    codes::Code,
    findings::Findings,
    place,
    preflight::Judged,
    wish::{Backend, Wish, WishedRoute},
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
    let mut whole = !salvaged.hosts_unreadable;
    for host in &salvaged.hosts {
        let Ok(pattern) = HostPattern::parse(&host.host) else {
            whole = false;
            continue;
        };
        let unclear = host.paths_unreadable || host.paths.is_empty();
        whole &= !unclear;
        let places = host
            .paths
            .iter()
            .map(|p| (salvaged_place(&p.path, p.path_type.as_deref()), false));
        // What cannot be told may be any path: the whole host, behind what others declare there.
        let rest = unclear.then(|| (place::everything(), true));
        let wished = wish.host(pattern, &FieldPath::root());
        wished.unclear |= unclear;
        wished
            .routes
            .extend(places.chain(rest).map(|(place, is_default)| WishedRoute {
                place,
                field: FieldPath::root(),
                is_default,
                judged: Rc::clone(judged),
                backend: Backend::default(),
                findings: Findings::default(),
            }));
    }
    if hosts_are_readable(undecodable) && !whole {
        let message = "not all paths of this object could be read, so nothing else opens or changes on its hosts";
        let diagnostic = wish
            .site()
            .finding(Code::Unreadable, &FieldPath::root(), message, MEND);
        wish.findings.push(diagnostic);
    } else if !whole {
        let message = "not all hosts of this object could be read, so hosts of its namespace that are not open yet stay closed";
        let diagnostic = wish
            .site()
            .finding(Code::Unreadable, &FieldPath::root(), message, MEND);
        wish.findings.push(diagnostic);
    }
}

const MEND: &str = "mend what else is reported about this object";

/// Whether every host that an undecodable object declares could be read.
pub(crate) fn hosts_are_readable(undecodable: &Undecodable) -> bool {
    let salvaged = &undecodable.salvaged;
    !salvaged.hosts_unreadable
        && salvaged
            .hosts
            .iter()
            .all(|host| HostPattern::parse(&host.host).is_ok())
}

/// Whether everything that an undecodable object declares could be staged.
pub(crate) fn is_whole(undecodable: &Undecodable) -> bool {
    let hosts = &undecodable.salvaged.hosts;
    hosts_are_readable(undecodable)
        && hosts
            .iter()
            .all(|host| !host.paths_unreadable && !host.paths.is_empty())
}

/// Where a salvaged path stands. A path type that is none means the most that it could.
fn salvaged_place(path: &str, path_type: Option<&str>) -> Match {
    let (match_type, expressions) = match path_type {
        Some("Exact" | "exact_path") => (MatchType::Exact, false),
        Some("path_prefix") => (MatchType::StringPrefix, false),
        Some("Prefix") => (MatchType::ElementPrefix, false),
        _ => (MatchType::ElementPrefix, true),
    };
    place::place(match_type, path, expressions).place
}
