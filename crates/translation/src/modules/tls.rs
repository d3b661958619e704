//! `tlsTermination` and `mutualTLS`: demands on every connection of a host (R13).

use std::collections::BTreeSet;

use model::{id::AuthorityId, module::TlsVersion};
use resources::{
    kinds::Kind,
    module_set::{MutualTls, TerminateAt, TlsTermination, TlsVersion as WrittenVersion},
    problem::FieldPath,
    snapshot::{ObjectKey, Presence},
};

use crate::{
    certificate,
    codes::Code,
    preflight::{Judge, Written},
    references::{Found, reference},
};

/// The entry of a Secret or ConfigMap that holds certificate authorities.
const CA: &str = "ca.crt";
/// Most authorities of an edge.
const AUTHORITIES_MAX: usize = 10;

pub(crate) fn termination(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, TlsTermination>,
) -> Option<TlsVersion> {
    let TlsTermination {
        terminate_at,
        min_version,
    } = written.content;
    match terminate_at {
        None | Some(TerminateAt::Edge) => {}
        Some(TerminateAt::Upstream) => {
            let message =
                "TLS is to end at the backend, but an HTTPS edge must read requests to route them";
            judge.report(
                Code::TlsTerminateAt,
                &written.field.member("terminateAt"),
                message,
                "write edge, or take terminateAt out",
            );
        }
    }
    match min_version? {
        version @ (WrittenVersion::V1_0 | WrittenVersion::V1_1) => {
            let name = if version == WrittenVersion::V1_0 {
                "1.0"
            } else {
                "1.1"
            };
            let message =
                format!("the edge speaks nothing below TLS 1.2, so a minimum of {name} means 1.2");
            judge.report(
                Code::TlsMinimumRaised,
                &written.field.member("minVersion"),
                message,
                "write 1.2 or 1.3",
            );
            Some(TlsVersion::V1_2)
        }
        WrittenVersion::V1_2 => Some(TlsVersion::V1_2),
        WrittenVersion::V1_3 => Some(TlsVersion::V1_3),
    }
}

pub(crate) fn mutual(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &MutualTls>,
) -> Option<BTreeSet<String>> {
    let at = written.field.member("certificateAuthorities");
    let names = &written.content.certificate_authorities;
    if names.is_empty() {
        let message =
            "mutual TLS without certificate authorities would ask nobody for a certificate";
        judge.report(
            Code::ModuleInvalid,
            &at,
            message,
            "name a Secret or ConfigMap with a ca.crt",
        );
        return None;
    }
    let mut authorities = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let field = at.item(index);
        if AuthorityId::parse(name).is_ok() {
            let message = format!(
                "{name} is stored at the edge, and this edge cannot use stored authorities yet"
            );
            judge.report(
                Code::ModuleNotEnforced,
                &field,
                message,
                "name a Secret or ConfigMap with a ca.crt instead",
            );
            continue;
        }
        let Some(text) = authority(judge, written, &field, name) else {
            continue;
        };
        judge.content("authority", &text);
        match certificate::authorities(&text) {
            Ok(found) => authorities.extend(found),
            Err(fault) => {
                let message = format!("{CA} of {name} {fault}");
                judge.report(
                    Code::AuthorityInvalid,
                    &field,
                    message,
                    "put the certificates of the authorities there, in PEM",
                );
            }
        }
    }
    if authorities.len() > AUTHORITIES_MAX {
        let message = format!(
            "{} certificate authorities are more than {AUTHORITIES_MAX}",
            authorities.len()
        );
        judge.report(Code::AuthorityInvalid, &at, message, "name fewer");
    }
    (!authorities.is_empty()).then_some(authorities)
}

/// The text of `ca.crt` in the Secret of this name, or else in the ConfigMap.
fn authority(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &MutualTls>,
    field: &FieldPath,
    name: &str,
) -> Option<String> {
    let key = ObjectKey::new(judge.namespace, name);
    let snapshot = judge.references.input.snapshot;
    let from = (written.site, field);
    if matches!(
        snapshot.find(Kind::Secret, &snapshot.secrets, &key),
        Presence::There(_) | Presence::Pending
    ) {
        let bytes = judge.references.secret(&key, CA, from, judge.findings)?;
        return Some(String::from_utf8_lossy(bytes.expose()).into_owned());
    }
    let remedy = "create a Secret or ConfigMap of this name with a ca.crt, or name another one";
    let missing = (Code::AuthorityMissing, remedy);
    let kind = (Kind::ConfigMap, &snapshot.config_maps);
    let object = reference(Kind::ConfigMap, &key);
    let Found::Sound(_, map) = judge
        .references
        .find(kind, &key, from, missing, judge.findings)
    else {
        if judge.findings.missing.contains(&object) {
            // A served set may have rested on either of them.
            judge.findings.missing.insert(reference(Kind::Secret, &key));
        }
        return None;
    };
    match map.data.get(CA).filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            judge.findings.rests_on.insert(object);
            Some(text.clone())
        }
        None => {
            let message = format!("{object} has no {CA}, or an empty one");
            let diagnostic = written.site.finding(
                Code::AuthorityMissing,
                field,
                message,
                "put the certificates of the authorities there, in PEM",
            );
            judge.findings.push_missing(object, diagnostic);
            None
        }
    }
}
