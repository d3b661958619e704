//! Which Ingresses are ours: by IngressClass, by name where there are no classes (files), by
//! default; and what becomes of those whose class is gone, unread or named the old way.

use model::{diagnostic::Diagnostic, object::ObjectRef};
use resources::{
    ingress::{Ingress, IngressClass},
    kinds::Kind,
    snapshot::{Object, ObjectKey, Presence, SalvagedClass},
};

use crate::{
    annotations::{DEFAULT_CLASS, LEGACY_CLASS},
    codes::Code,
    findings::{Findings, Site},
    references::{References, annotation, not_read_yet, reference, spec},
};

/// Whose an Ingress is.
pub(crate) enum Standing {
    /// Ours; what was found about its class concerns every route of it.
    Ours(Findings),
    /// It cannot be told, and it was not ours before.
    Unclear,
    /// Somebody else's, or nobody's.
    Others,
}

/// A class that an Ingress names.
enum Named<'a> {
    Ours(Option<&'a Object<IngressClass>>),
    Others,
    Broken(&'a Object<IngressClass>),
    Pending,
    Missing,
}

/// Whose this Ingress is. What its author should know goes to `loose` where nothing is served.
pub(crate) fn standing(
    references: &References<'_>,
    ingress: &Object<Ingress>,
    loose: &mut Vec<Diagnostic>,
) -> Standing {
    let object = reference(Kind::Ingress, &ingress.key);
    let site = Site {
        object: &object,
        origin: &ingress.origin,
    };
    let legacy = ingress.annotations.get(LEGACY_CLASS).map(String::as_str);
    let class = match &ingress.value {
        Ok(value) => value
            .spec
            .ingress_class_name
            .clone()
            .map_or(SalvagedClass::Absent, SalvagedClass::Named),
        Err(undecodable) => undecodable.salvaged.class.clone(),
    };
    match (class, legacy) {
        (SalvagedClass::Named(name), _) => by_name(references, (site, &object), &name, loose),
        (SalvagedClass::Unreadable, _) => Standing::Ours(Findings::default()),
        (SalvagedClass::Absent, Some(name)) => match named(references, name) {
            Named::Ours(_) | Named::Broken(_) => {
                let mut findings = Findings::default();
                findings.push(site.finding(
                    Code::LegacyClass,
                    &annotation(LEGACY_CLASS),
                    format!(
                        "the class {name} is named by an annotation that has no effect any more"
                    ),
                    format!("write spec.ingressClassName: {name} and delete the annotation"),
                ));
                Standing::Ours(findings)
            }
            Named::Others | Named::Missing | Named::Pending => {
                loose.push(site.finding(
                    Code::NotHandled,
                    &annotation(LEGACY_CLASS),
                    format!("this Ingress is left to the class {name}, which is not ours"),
                    "write spec.ingressClassName if it is meant to be served here",
                ));
                Standing::Others
            }
        },
        (SalvagedClass::Absent, None) => by_default(references, (site, &object), loose),
    }
}

fn by_name(
    references: &References<'_>,
    (site, object): (Site<'_>, &ObjectRef),
    name: &str,
    loose: &mut Vec<Diagnostic>,
) -> Standing {
    let field = spec("ingressClassName");
    let class = ObjectRef::new(Kind::IngressClass.name(), "", name);
    let mut findings = Findings::default();
    match named(references, name) {
        Named::Ours(there) => {
            findings.rests_on.extend(there.map(|_| class));
            Standing::Ours(findings)
        }
        Named::Others => Standing::Others,
        Named::Broken(there) => {
            let option = references.input.options.ingress_class.as_deref();
            if option != Some(name) && references.recorded(object).is_empty() {
                return Standing::Others;
            }
            broken(&class, there, &mut findings);
            Standing::Ours(findings)
        }
        Named::Pending if references.recorded(object).is_empty() => Standing::Unclear,
        Named::Pending => {
            findings.push(not_read_yet(site, &field, &class));
            Standing::Ours(findings)
        }
        Named::Missing if references.recorded(object).is_empty() => {
            loose.push(site.finding(
                Code::NotHandled,
                &field,
                format!("there is no class {name}, so nobody serves this Ingress"),
                format!("name a class that is served here: {}", ours(references)),
            ));
            Standing::Others
        }
        Named::Missing => {
            lost(&mut findings, site, &class);
            Standing::Ours(findings)
        }
    }
}

fn by_default(
    references: &References<'_>,
    (site, object): (Site<'_>, &ObjectRef),
    loose: &mut Vec<Diagnostic>,
) -> Standing {
    let field = spec("ingressClassName");
    let mut findings = Findings::default();
    let is_default = |class: &&Object<IngressClass>| {
        class
            .annotations
            .get(DEFAULT_CLASS)
            .is_some_and(|value| value == "true")
    };
    let snapshot = references.input.snapshot;
    let classes = snapshot
        .ingress_classes
        .values()
        .map(std::convert::AsRef::as_ref);
    if let Some(class) = classes
        .filter(is_default)
        .find(|class| is_ours(references, class) == Some(true))
    {
        findings
            .rests_on
            .insert(reference(Kind::IngressClass, &class.key));
        return Standing::Ours(findings);
    }
    // A default class that was deleted cannot be named by the Ingress; the record names it.
    let gone = references
        .recorded(object)
        .iter()
        .flat_map(|(_, _, route)| &route.rests_on)
        .find(|on| on.kind == Kind::IngressClass.name());
    if let Some(class) = gone {
        let key = ObjectKey::new("", class.name.as_str());
        match snapshot.find(Kind::IngressClass, &snapshot.ingress_classes, &key) {
            Presence::There(_) => return Standing::Others,
            Presence::Pending => findings.push(not_read_yet(site, &field, class)),
            Presence::Missing => lost(&mut findings, site, class),
        }
        return Standing::Ours(findings);
    }
    if snapshot.pending_kinds.contains(&Kind::IngressClass) {
        return Standing::Unclear;
    }
    loose.push(site.finding(
        Code::NotHandled,
        &field,
        "this Ingress names no class, and no class of ours is the default one",
        format!("write spec.ingressClassName: {}", ours(references)),
    ));
    Standing::Others
}

fn lost(findings: &mut Findings, site: Site<'_>, class: &ObjectRef) {
    let diagnostic = site.finding(
        Code::ClassMissing,
        &spec("ingressClassName"),
        format!("{class} does not exist, so it is not known whose this Ingress is"),
        "create it, or name another class",
    );
    findings.push_missing(class.clone(), diagnostic);
}

fn broken(class: &ObjectRef, there: &Object<IngressClass>, findings: &mut Findings) {
    let site = Site {
        object: class,
        origin: &there.origin,
    };
    for problem in there
        .value
        .as_ref()
        .err()
        .into_iter()
        .flat_map(|undecodable| &undecodable.problems)
    {
        findings.push(site.problem(problem));
    }
    findings.rests_on.insert(class.clone());
}

fn named<'a>(references: &References<'a>, name: &str) -> Named<'a> {
    let snapshot = references.input.snapshot;
    // Files need no IngressClass: there the name alone decides.
    if snapshot.ingress_classes.is_empty()
        && references.input.options.ingress_class.as_deref() == Some(name)
    {
        return Named::Ours(None);
    }
    match snapshot.find(
        Kind::IngressClass,
        &snapshot.ingress_classes,
        &ObjectKey::new("", name),
    ) {
        Presence::There(class) => match is_ours(references, class) {
            Some(true) => Named::Ours(Some(class)),
            Some(false) => Named::Others,
            None => Named::Broken(class),
        },
        Presence::Pending => Named::Pending,
        Presence::Missing => Named::Missing,
    }
}

/// Whether a class is ours; `None` if it does not decode.
fn is_ours(references: &References<'_>, class: &Object<IngressClass>) -> Option<bool> {
    let class = class.value.as_ref().ok()?;
    Some(
        references
            .input
            .options
            .controller_names
            .contains(&class.spec.controller),
    )
}

/// The classes that are ours, for people.
fn ours(references: &References<'_>) -> String {
    let classes = &references.input.snapshot.ingress_classes;
    if classes.is_empty() {
        return references
            .input
            .options
            .ingress_class
            .clone()
            .unwrap_or_default();
    }
    let names: Vec<&str> = classes
        .values()
        .filter(|class| is_ours(references, class) == Some(true))
        .map(|class| class.key.name.as_str())
        .collect();
    if names.is_empty() {
        String::from("(none yet)")
    } else {
        names.join(", ")
    }
}
