//! The edge-wide modules of a host, from all declarations that have a say in it (R13): the
//! strictest TLS minimum, one list of authorities, and nothing opens on what cannot be had.

use model::{
    diagnostic::{Cause, Severity},
    host::HostPattern,
    module::EdgeDemands,
};
use resources::problem::FieldPath;

use crate::{
    codes::Code,
    findings::{Findings, Verdict},
    references::References,
    wish::{EdgeWide, Wish},
};

/// What a host demands of every connection.
pub(crate) struct Demands {
    /// The demands; `None` while they are in error or unread: those in force stay.
    pub(crate) known: Option<EdgeDemands>,
    /// What every route of the host rests on, and why none of them may open.
    pub(crate) findings: Findings,
}

/// Puts the demands of a host's declarations together; the older come first. `away`: a recorded
/// declaration of the host may still stand, but cannot be read.
pub(crate) fn combine(
    references: &References<'_>,
    host: &HostPattern,
    wishes: &[&Wish<'_>],
    away: bool,
) -> Demands {
    let mut findings = Findings::default();
    let mut known = EdgeDemands::default();
    let mut is_known = true;
    let in_force = references
        .input
        .records
        .hosts
        .get(host)
        .map(|record| &record.demands);
    for wish in wishes {
        findings
            .rests_on
            .extend(wish.edge_findings.rests_on.iter().cloned());
        match &wish.edge_wide {
            EdgeWide::Known(demands) | EdgeWide::Unknown(demands) => {
                is_known &= join(&mut known, demands, (wish, host), &mut findings);
            }
            EdgeWide::Failed => {
                is_known = false;
                fail(wish, host, &mut findings);
            }
            EdgeWide::Pending => {
                is_known = false;
                let message = format!(
                    "what {} demands of every connection to {host} has not been read yet",
                    wish.object
                );
                let remedy = "nothing on this host changes until it has been";
                findings.push(wish.site().finding(
                    Code::NotReadYet,
                    &FieldPath::root(),
                    message,
                    remedy,
                ));
            }
        }
    }
    // The demands of what is held stay (R13): its old set was whole with them only.
    let held = wishes.iter().find(|wish| is_held(references, host, wish));
    if let (Some(in_force), Some(wish)) = (in_force, held.or(wishes.first().filter(|_| away))) {
        is_known &= join(&mut known, in_force, (wish, host), &mut findings);
    }
    Demands {
        known: is_known.then_some(known),
        findings,
    }
}

/// Whether a declaration that is being served on this host cannot be served as it is now.
fn is_held(references: &References<'_>, host: &HostPattern, wish: &Wish<'_>) -> bool {
    let served = references
        .recorded(&wish.object)
        .iter()
        .any(|(of, _, route)| *of == host && route.is_open);
    let wished = &wish.hosts[host];
    let of_all = [&wish.findings, &wish.edge_findings, &wished.findings];
    let of_routes = wished.routes.iter().flat_map(|route| {
        [
            &route.judged.route,
            &route.findings,
            &route.backend.findings,
        ]
    });
    served
        && of_all
            .into_iter()
            .chain(of_routes)
            .any(|findings| findings.verdict() != Verdict::Sound)
}

/// An edge-wide failure concerns every route of the host.
fn fail(wish: &Wish<'_>, host: &HostPattern, findings: &mut Findings) {
    findings
        .missing
        .extend(wish.edge_findings.missing.iter().cloned());
    let errors = |found: &Findings| -> Vec<_> {
        found
            .diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .cloned()
            .collect()
    };
    let mut reasons = errors(&wish.edge_findings);
    if reasons.is_empty() {
        // An undecodable module set names something edge-wide.
        reasons = errors(&wish.findings)
            .into_iter()
            .filter(|d| d.cause == Cause::Invalid)
            .collect();
    }
    debug_assert!(
        !reasons.is_empty(),
        "{} fails edge-wide on {host} without a reason",
        wish.object
    );
    findings.diagnostics.extend(reasons);
}

/// Adds demands to those of older declarations; `false` if they cannot both be met.
fn join(
    known: &mut EdgeDemands,
    demanded: &EdgeDemands,
    (wish, host): (&Wish<'_>, &HostPattern),
    findings: &mut Findings,
) -> bool {
    let EdgeDemands {
        tls_minimum,
        mutual_tls,
    } = demanded;
    known.tls_minimum = known.tls_minimum.max(*tls_minimum);
    match (&known.mutual_tls, mutual_tls) {
        (Some(known), Some(demanded)) if known != demanded => {
            let message = format!(
                "another declaration of {host}, or one that is held, demands client certificates of other authorities"
            );
            findings.push(wish.site().finding(
                Code::AuthoritiesDiffer,
                &FieldPath::root(),
                message,
                "name the same authorities in all of them",
            ));
            false
        }
        (None, Some(_)) => {
            known.mutual_tls.clone_from(mutual_tls);
            true
        }
        (Some(_) | None, _) => true,
    }
}
