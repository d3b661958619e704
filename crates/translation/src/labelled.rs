//! Annotations and labels of an object that declares hosts: what only looks as if it protected is
//! refused, whatever the kind, and what protects under another controller is told.

use model::diagnostic::{Cause, Diagnostic, Severity};
use resources::{kinds::Kind, problem::FieldPath, snapshot::Object};

use crate::{
    annotations::{self, HAND_OVER, MODULES, Misuse, TRAFFIC_POLICY},
    codes::Code,
    findings::Site,
    foreign_protection,
    options::ForeignProtection,
    references::{References, annotation},
    wish::Wish,
};

/// Annotations that say something on an Ingress, and nothing elsewhere.
const FOR_INGRESSES: [&str; 2] = [MODULES, TRAFFIC_POLICY];

/// Refuses annotations that only look as if they protected, and tells of those that protect
/// elsewhere.
pub(crate) fn judge<T>(references: &References<'_>, wish: &mut Wish<'_>, object: &Object<T>) {
    let mut findings = std::mem::take(&mut wish.findings);
    let mut may_restrict = false;
    let site = wish.site();
    let on_ingress = wish.object.kind == Kind::Ingress.name();
    // What names a module set does so on Ingresses only.
    let remedy = |of_ingress: String| match on_ingress {
        true => of_ingress,
        false => String::from("delete it; a hand-written edge has its modules under spec.routes"),
    };
    for (key, value) in &object.annotations {
        let misuse = match annotations::judge(key) {
            None if on_ingress || !FOR_INGRESSES.contains(&key.as_str()) => None,
            None => Some((
                Code::AnnotationUnknown,
                format!("the annotation {key} has an effect on Ingresses only"),
                remedy(String::new()),
            )),
            Some(Misuse::Retired(meant)) => Some((
                Code::AnnotationRetired,
                format!("the annotation {key} has no effect any more"),
                remedy(meant.to_owned()),
            )),
            Some(Misuse::Unknown(meant)) => Some((
                Code::AnnotationUnknown,
                format!("there is no annotation {key}"),
                match meant {
                    Some(HAND_OVER) => format!("write {HAND_OVER} if that is meant, or delete it"),
                    Some(meant) => remedy(format!("write {meant} if that is meant, or delete it")),
                    None => remedy(String::from(
                        "delete it; modules are named in k8s.ngrok.com/modules",
                    )),
                },
            )),
        };
        if let Some((code, message, remedy)) = misuse {
            may_restrict = true;
            findings.push(site.finding(code, &annotation(key), message, remedy));
        }
        if let Some(diagnostic) = foreign(references, site, key, value) {
            may_restrict |= diagnostic.severity == Severity::Error;
            findings.push(diagnostic);
        }
    }
    for key in object.labels.keys() {
        if let Some(meant) = annotations::judge_label(key) {
            may_restrict = true;
            let message = format!("the label {key} has no effect: labels protect nothing");
            let remedy = remedy(format!(
                "write {meant} under metadata.annotations, or delete the label"
            ));
            let field = FieldPath::from("metadata.labels");
            findings.push(site.finding(Code::AnnotationUnknown, &field, message, remedy));
        }
    }
    if object
        .annotations
        .get(HAND_OVER)
        .is_some_and(|namespace| !is_namespace(namespace.trim()))
    {
        let message = format!("{HAND_OVER} is not the name of a namespace");
        findings.push(site.finding(
            Code::AnnotationInvalid,
            &annotation(HAND_OVER),
            message,
            "write one name, or delete the annotation",
        ));
        wish.hand_over = None;
    }
    wish.findings = findings;
    wish.may_restrict |= may_restrict;
}

/// A protection of another controller: told, or refused, as the operator chose.
fn foreign(
    references: &References<'_>,
    site: Site<'_>,
    key: &str,
    value: &str,
) -> Option<Diagnostic> {
    let (controller, protection) = foreign_protection::recognise(key, value)?;
    let message = format!(
        "{key} protects by {} under {controller}, and has no effect here",
        protection.what()
    );
    let field = annotation(key);
    let mut diagnostic = site.finding(
        Code::ForeignProtection,
        &field,
        message,
        protection.remedy(),
    );
    match references.input.options.foreign_protection {
        ForeignProtection::Warn => {}
        ForeignProtection::Refuse => {
            diagnostic.severity = Severity::Error;
            diagnostic.cause = Cause::Invalid;
        }
    }
    Some(diagnostic)
}

/// RFC 1123 label, as Kubernetes demands of namespaces.
fn is_namespace(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(fine)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
