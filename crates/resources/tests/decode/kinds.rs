//! What becomes of every `apiVersion` and `kind`.

use resources::kinds::{Class, Kind, classify};

#[test]
fn every_kind_that_is_read_is_found_under_its_name() {
    for kind in Kind::ALL {
        assert_eq!(
            classify(&kind.api_version(), kind.name()),
            Ok(Class::Read(kind))
        );
        assert_eq!(
            classify(&kind.api_version(), &format!("{kind}List")),
            Ok(Class::List)
        );
    }
    assert_eq!(classify("v1", "List"), Ok(Class::List));
}

#[test]
fn other_groups_are_ignored() {
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "Pod"),
        ("v1", "Node"),
        ("v1", "Event"),
        ("v1", "Endpoints"),
        ("v1", "ServiceAccount"),
        ("v1", "LimitRange"),
        ("networking.k8s.io/v1", "IPAddress"),
        ("networking.k8s.io/v1", "ServiceCIDR"),
        ("extensions/v1beta1", "Deployment"),
        ("metrics.k8s.io/v1", "Domain"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("serving.knative.dev/v1", "Service"),
        ("config.openshift.io/v1", "Ingress"),
        ("example.com/v1", "Domain"),
        ("notngrok.com/v1", "HTTPSEdge"),
        ("gateway.networking.k8s.io/v1", "Gateway"),
        ("", ""),
    ] {
        assert_eq!(
            classify(api_version, kind),
            Ok(Class::Ignored),
            "{api_version} {kind}"
        );
    }
}

#[test]
fn what_is_meant_for_us_is_never_ignored() {
    for (api_version, kind, expected) in [
        (
            "ingress.k8s.ngrok.com/v1",
            "HTTPSEdge",
            "apiVersion: wrong-version: there is no HTTPSEdge in ingress.k8s.ngrok.com/v1 \
             (write apiVersion: ingress.k8s.ngrok.com/v1alpha1)",
        ),
        (
            "ngrok.k8s.ngrok.com/v1alpha1",
            "NgrokModuleSet",
            "apiVersion: wrong-version: there is no NgrokModuleSet in ngrok.k8s.ngrok.com/v1alpha1 \
             (write apiVersion: ingress.k8s.ngrok.com/v1alpha1)",
        ),
        (
            "ngrok.com/v1",
            "Ingress",
            "apiVersion: wrong-version: there is no Ingress in ngrok.com/v1 (write apiVersion: networking.k8s.io/v1)",
        ),
        (
            "networking.k8s.io/v1beta1",
            "Ingress",
            "apiVersion: wrong-version: there is no Ingress in networking.k8s.io/v1beta1 \
             (write apiVersion: networking.k8s.io/v1)",
        ),
        (
            "extensions/v1beta1",
            "Ingress",
            "apiVersion: wrong-version: there is no Ingress in extensions/v1beta1 (write apiVersion: networking.k8s.io/v1)",
        ),
        (
            "v2",
            "Secret",
            "apiVersion: wrong-version: there is no Secret in v2 (write apiVersion: v1)",
        ),
        (
            "ingress.k8s.ngrok.com/v1alpha1",
            "NgrokModulSet",
            "kind: unknown-kind: there is no kind NgrokModulSet in ingress.k8s.ngrok.com/v1alpha1 \
             that this controller handles (did you mean NgrokModuleSet?)",
        ),
        (
            "ngrok.k8s.ngrok.com/v1alpha1",
            "AgentEndpoint",
            "kind: unknown-kind: there is no kind AgentEndpoint in ngrok.k8s.ngrok.com/v1alpha1 that this controller \
             handles (the kinds are NgrokModuleSet, HTTPSEdge, TCPEdge, TLSEdge, Tunnel, Domain, IPPolicy and \
             NgrokTrafficPolicy)",
        ),
        (
            "networking.k8s.io/v1",
            "ingress",
            "kind: unknown-kind: there is no kind ingress in networking.k8s.io/v1 that this controller handles \
             (did you mean Ingress?)",
        ),
        (
            "networking.k8s.io/v1",
            "Ingresss",
            "kind: unknown-kind: there is no kind Ingresss in networking.k8s.io/v1 that this controller handles \
             (did you mean Ingress?)",
        ),
        (
            "v1",
            "Ingress",
            "apiVersion: wrong-version: there is no Ingress in v1 (write apiVersion: networking.k8s.io/v1)",
        ),
        (
            "networking.k8s.io",
            "Ingres",
            "kind: unknown-kind: there is no kind Ingres in networking.k8s.io that this controller handles \
             (did you mean Ingress?)",
        ),
        (
            "example.com/v1",
            "ingress",
            "apiVersion: wrong-version: there is no Ingress in example.com/v1 (write apiVersion: networking.k8s.io/v1)",
        ),
        (
            "ingress.k8s.ngrok.co/v1alpha1",
            "HTTPSEdge",
            "apiVersion: wrong-version: there is no HTTPSEdge in ingress.k8s.ngrok.co/v1alpha1 \
             (write apiVersion: ingress.k8s.ngrok.com/v1alpha1)",
        ),
        (
            "v1",
            "Lists",
            "kind: unknown-kind: there is no kind Lists in v1 that this controller handles (did you mean List?)",
        ),
    ] {
        let problem = classify(api_version, kind).expect_err("it is refused");
        assert_eq!(problem.to_string(), expected);
    }
}
