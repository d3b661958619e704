//! The annotations that mean something here, and the refusal of those that only look as if.
//!
//! Upstream once read protections from annotations that it ignores today, without a word; and a
//! misspelt one has never done anything. Each such annotation closes or holds its routes here.

/// Names of module sets, separated by commas, later ones over earlier ones.
pub const MODULES: &str = "k8s.ngrok.com/modules";
/// Name of one traffic policy.
pub const TRAFFIC_POLICY: &str = "k8s.ngrok.com/traffic-policy";
/// On a Service: port name to `HTTP` or `HTTPS`, as JSON.
pub const APP_PROTOCOLS: &str = "k8s.ngrok.com/app-protocols";
/// On a Service of type LoadBalancer: the host of its TLS edge.
pub const DOMAIN: &str = "k8s.ngrok.com/domain";
/// The namespace that may take over this object's hosts, and declare names below its wildcards.
pub const HAND_OVER: &str = "portcullis.dev/hand-over";
/// The annotation by which an Ingress named its class before `spec.ingressClassName`.
pub const LEGACY_CLASS: &str = "kubernetes.io/ingress.class";
/// On an IngressClass: takes the Ingresses that name no class.
pub const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

/// A label: objects that carry it are output of a controller like this one, never declarations.
pub const OWNER_LABEL: &str = "portcullis.dev/owner";
/// Labels on what the upstream controller made from Ingresses.
pub const UPSTREAM_LABELS: [&str; 2] = [
    "k8s.ngrok.com/controller-namespace",
    "k8s.ngrok.com/controller-name",
];

/// What is meant for an Ingress.
const KNOWN: [&str; 3] = [MODULES, TRAFFIC_POLICY, HAND_OVER];

/// Annotations that once meant something, or mean something elsewhere: name without prefix (a
/// last `*` stands for anything), and what to do instead.
const RETIRED: &[(&str, &str)] = &[
    (
        "https-compression",
        "put compression into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "request-headers-*",
        "put headers.request into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "response-headers-*",
        "put headers.response into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "ip-policies",
        "put ipRestriction into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "ip-policy-ids",
        "put ipRestriction into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "tls-min-version",
        "put tlsTermination.minVersion into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "webhook-verification-*",
        "put webhookVerification into a module set and name it in k8s.ngrok.com/modules",
    ),
    (
        "https-oauth.*",
        "put oauth into a module set and name it in k8s.ngrok.com/modules",
    ),
    ("edge-id", "delete it: the edge is found by its host"),
    ("app-protocols", "put it on the Service"),
    (
        "domain",
        "put it on a Service of type LoadBalancer; an Ingress names hosts in its rules",
    ),
    (
        "url",
        "name the host in a rule; endpoints of later versions do not exist here",
    ),
    (
        "computed-url",
        "delete it: it was written by another controller",
    ),
    (
        "bindings",
        "delete it: every host here is public, and what must not be is protected by modules",
    ),
    (
        "mapping-strategy",
        "delete it: Ingresses are always served by edges here",
    ),
    (
        "pooling-enabled",
        "delete it: endpoints of later versions do not exist here",
    ),
    (
        "description",
        "delete it: edges made from an Ingress have the description of the controller",
    ),
    (
        "metadata",
        "delete it: edges made from an Ingress have the metadata of the controller",
    ),
];

/// Names too general to be ours when they stand alone, without a prefix.
const GENERAL: [&str; 5] = ["domain", "url", "bindings", "description", "metadata"];

/// What is wrong with an annotation of ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// It is known, and has no effect here; what to do instead.
    Retired(&'static str),
    /// It is not known; what was probably meant.
    Unknown(Option<&'static str>),
}

/// Judges the key of an annotation on an object that declares hosts; `None` if it is fine, or none of ours.
pub(crate) fn judge(key: &str) -> Option<Misuse> {
    if KNOWN.contains(&key) {
        return None;
    }
    // As if every separator were a dot: `k8s.ngrok.com.modules` is `k8s.ngrok.com/modules`.
    let dotted = key.to_ascii_lowercase().replace(['/', '_', ':'], ".");
    if let Some(meant) = KNOWN.into_iter().find(|known| {
        let known = known.replace('/', ".");
        distance(&dotted, &known) <= 3
    }) {
        let retired = key.split_once('/').is_some_and(|(prefix, name)| {
            is_ours(prefix) && RETIRED.iter().any(|(pattern, _)| *pattern == name)
        });
        if !retired {
            return Some(Misuse::Unknown(Some(meant)));
        }
    }
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (prefix.to_ascii_lowercase(), name),
        None => {
            if let Some(meant) = KNOWN
                .into_iter()
                .find(|known| distance(&dotted, bare(known)) <= 1)
            {
                return Some(Misuse::Unknown(Some(meant)));
            }
            let ours = ["k8s.ngrok.com.", "ngrok.com.", "portcullis.dev."]
                .into_iter()
                .find(|ours| dotted.starts_with(ours));
            match ours.and_then(|ours| Some((ours, key.get(ours.len()..)?))) {
                Some((ours, name)) => (ours.trim_end_matches('.').to_owned(), name),
                None if GENERAL.contains(&key) => return None,
                None => {
                    return RETIRED
                        .iter()
                        .find(|(pattern, _)| *pattern == key)
                        .map(|(_, remedy)| Misuse::Retired(remedy));
                }
            }
        }
    };
    if !is_ours(&prefix) {
        return None;
    }
    let fits = |pattern: &str| {
        pattern
            .strip_suffix('*')
            .map_or(name == pattern, |begin| name.starts_with(begin))
    };
    if let Some((_, remedy)) = RETIRED.iter().find(|(pattern, _)| fits(pattern)) {
        return Some(Misuse::Retired(remedy));
    }
    let nearest = KNOWN
        .into_iter()
        .map(|known| (distance(name, bare(known)), known))
        .min()
        .filter(|(distance, known)| *distance <= 3 && *distance < known.len() / 3);
    Some(Misuse::Unknown(nearest.map(|(_, known)| known)))
}

/// Judges the key of a label on an Ingress: a label protects nothing, so one that would as an
/// annotation is a mistake.
pub(crate) fn judge_label(key: &str) -> Option<&'static str> {
    if let Some(known) = KNOWN.into_iter().find(|known| *known == key) {
        return Some(known);
    }
    // Bare names are common as labels and mean other things.
    if !key.contains(['/', '.']) || UPSTREAM_LABELS.contains(&key) {
        return None;
    }
    match judge(key)? {
        Misuse::Unknown(meant) => meant,
        Misuse::Retired(_) => None,
    }
}

/// A key without its prefix.
fn bare(key: &str) -> &str {
    key.split_once('/').map_or(key, |(_, name)| name)
}

/// Whether a prefix is ours or meant to be.
fn is_ours(prefix: &str) -> bool {
    ["k8s.ngrok.com", "ngrok.com", "portcullis.dev"]
        .into_iter()
        .any(|ours| distance(prefix, ours) <= 2)
        || prefix.split('.').any(|label| label == "ngrok")
}

/// Levenshtein's distance; long texts differ too much to matter.
fn distance(left: &str, right: &str) -> usize {
    if left.len().abs_diff(right.len()) > 3 || left.len() > 64 {
        return usize::MAX;
    }
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retired_and_misspelt_annotations_are_told_apart_from_foreign_ones() {
        assert_eq!(judge("k8s.ngrok.com/modules"), None);
        assert_eq!(judge("kubernetes.io/ingress.class"), None);
        assert_eq!(judge("example.com/modules"), None);
        for misspelt in [
            "modules",
            "module",
            "k8s.ngrok.com.modules",
            "k8s.ngrok.com/modules/",
            "K8s.Ngrok.com/Modules",
            "k8s-ngrok-com/modules",
            "k8s.ngrok.com_modules",
            "k8s/ngrok.com/modules",
        ] {
            assert_eq!(
                judge(misspelt),
                Some(Misuse::Unknown(Some(MODULES))),
                "{misspelt}"
            );
        }
        assert_eq!(
            judge("traffic-policy"),
            Some(Misuse::Unknown(Some(TRAFFIC_POLICY)))
        );
        assert!(matches!(judge("ip-policies"), Some(Misuse::Retired(_))));
        for fine in [
            "description",
            "metadata",
            "kubectl.kubernetes.io/last-applied-configuration",
        ] {
            assert_eq!(judge(fine), None, "{fine}");
        }
        assert_eq!(judge_label("k8s.ngrok.com/modules"), Some(MODULES));
        assert_eq!(judge_label("k8s.ngrok.com.modules"), Some(MODULES));
        assert_eq!(judge_label("app.kubernetes.io/name"), None);
        assert_eq!(judge_label(UPSTREAM_LABELS[1]), None);
        assert_eq!(
            judge("k8s.ngrok.com/module"),
            Some(Misuse::Unknown(Some(MODULES)))
        );
        assert_eq!(
            judge("k8s.ngork.com/modules"),
            Some(Misuse::Unknown(Some(MODULES)))
        );
        assert_eq!(
            judge("ngrok.com/modules"),
            Some(Misuse::Unknown(Some(MODULES)))
        );
        assert_eq!(
            judge("k8s.ngrok.com/trafic-policy"),
            Some(Misuse::Unknown(Some(TRAFFIC_POLICY)))
        );
        assert_eq!(judge("k8s.ngrok.com/oauth"), Some(Misuse::Unknown(None)));
        assert!(matches!(
            judge("ngrok.com/https-oauth.provider"),
            Some(Misuse::Retired(_))
        ));
        assert!(matches!(
            judge("k8s.ngrok.com/ip-policies"),
            Some(Misuse::Retired(_))
        ));
        assert_eq!(
            judge("portcullis.dev/handover"),
            Some(Misuse::Unknown(Some(HAND_OVER)))
        );
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("modules", "modules"), 0);
        assert_eq!(distance("module", "modules"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
