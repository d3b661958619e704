//! Annotations by which other controllers protect an Ingress. Here they protect nothing, and
//! whoever moves an Ingress over must hear of it before a visitor does.
//!
//! Sources: the annotation references of ingress-nginx, NGINX Ingress Controller, Traefik,
//! HAProxy Kubernetes Ingress, HAProxy Ingress, Contour, AWS Load Balancer Controller, Azure
//! Application Gateway Ingress, Kong, Apache APISIX, Higress, Pomerium, Skipper, Emissary, GKE
//! Ingress and OpenShift.

/// What a foreign annotation protects by: decides what is recommended instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    Login,
    Addresses,
    ClientCertificate,
    TlsMinimum,
    Limits,
    Rules,
}

impl Protection {
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Login => "a login",
            Self::Addresses => "a list of addresses",
            Self::ClientCertificate => "client certificates",
            Self::TlsMinimum => "a lowest TLS version",
            Self::Limits => "limits",
            Self::Rules => "rules of its own",
        }
    }

    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::Login => {
                "put oauth, oidc or saml into a module set and name it in k8s.ngrok.com/modules, then delete this annotation"
            }
            Self::Addresses => {
                "put ipRestriction into a module set and name it in k8s.ngrok.com/modules, then delete this annotation"
            }
            Self::ClientCertificate => {
                "put mutualTLS into a module set and name it in k8s.ngrok.com/modules, then delete this annotation"
            }
            Self::TlsMinimum => {
                "put tlsTermination.minVersion into a module set and name it in k8s.ngrok.com/modules, then delete this annotation"
            }
            Self::Limits | Self::Rules => {
                "find out what it protects against, protect the backend some other way, then delete this annotation"
            }
        }
    }
}

use Protection::{Addresses, ClientCertificate, Limits, Login, Rules, TlsMinimum};

struct Family {
    controller: &'static str,
    /// What the keys begin with.
    prefix: &'static str,
    /// The rest of a key; a last `*` stands for anything. The first that fits decides.
    names: &'static [(&'static str, Protection)],
}

const FAMILIES: &[Family] = &[
    Family {
        controller: "ingress-nginx",
        prefix: "nginx.ingress.kubernetes.io/",
        names: &[
            ("auth-tls-*", ClientCertificate),
            ("auth-*", Login),
            ("enable-global-auth", Login),
            ("satisfy", Login),
            ("whitelist-source-range", Addresses),
            ("allowlist-source-range", Addresses),
            ("denylist-source-range", Addresses),
            ("limit-*", Limits),
            ("global-rate-limit*", Limits),
            ("enable-modsecurity", Rules),
            ("enable-owasp-core-rules", Rules),
            ("modsecurity-snippet", Rules),
            ("configuration-snippet", Rules),
            ("server-snippet", Rules),
        ],
    },
    Family {
        controller: "NGINX Ingress Controller",
        prefix: "nginx.org/",
        names: &[
            ("basic-auth-*", Login),
            ("limit-req-*", Limits),
            ("policies", Rules),
            ("location-snippets", Rules),
            ("server-snippets", Rules),
        ],
    },
    Family {
        controller: "NGINX Ingress Controller",
        prefix: "nginx.com/",
        names: &[("jwt-*", Login)],
    },
    Family {
        controller: "NGINX Ingress Controller",
        prefix: "appprotect.f5.com/",
        names: &[("app-protect-*", Rules)],
    },
    Family {
        controller: "NGINX Ingress Controller",
        prefix: "appprotectdos.f5.com/",
        names: &[("*", Limits)],
    },
    Family {
        controller: "Traefik",
        prefix: "traefik.ingress.kubernetes.io/",
        names: &[
            ("router.middlewares", Rules),
            ("router.tls.options", ClientCertificate),
            ("auth-*", Login),
            ("whitelist-source-range", Addresses),
            ("rate-limit", Limits),
        ],
    },
    Family {
        controller: "Traefik or HAProxy Ingress",
        prefix: "ingress.kubernetes.io/",
        names: &[
            ("auth-tls-*", ClientCertificate),
            ("auth-*", Login),
            ("whitelist-source-range", Addresses),
            ("allowlist-source-range", Addresses),
            ("denylist-source-range", Addresses),
            ("limit-*", Limits),
            ("waf", Rules),
            ("config-backend", Rules),
        ],
    },
    Family {
        controller: "HAProxy Ingress",
        prefix: "haproxy-ingress.github.io/",
        names: &[
            ("auth-tls-*", ClientCertificate),
            ("auth-*", Login),
            ("oauth*", Login),
            ("whitelist-source-range", Addresses),
            ("allowlist-source-range", Addresses),
            ("denylist-source-range", Addresses),
            ("limit-*", Limits),
            ("waf*", Rules),
            ("config-backend*", Rules),
            ("config-frontend*", Rules),
        ],
    },
    Family {
        controller: "HAProxy Kubernetes Ingress",
        prefix: "haproxy.org/",
        names: &[
            ("auth-*", Login),
            ("allow-list", Addresses),
            ("whitelist", Addresses),
            ("deny-list", Addresses),
            ("blacklist", Addresses),
            ("client-ca", ClientCertificate),
            ("client-crt-optional", ClientCertificate),
            ("rate-limit-*", Limits),
            ("backend-config-snippet", Rules),
        ],
    },
    Family {
        controller: "Contour",
        prefix: "projectcontour.io/",
        names: &[("tls-minimum-protocol-version", TlsMinimum)],
    },
    Family {
        controller: "AWS Load Balancer Controller",
        prefix: "alb.ingress.kubernetes.io/",
        names: &[
            ("auth-*", Login),
            ("jwt-validation", Login),
            ("inbound-cidrs", Addresses),
            ("security-groups", Addresses),
            ("security-group-prefix-lists", Addresses),
            ("scheme", Addresses),
            ("mutual-authentication", ClientCertificate),
            ("ssl-policy", TlsMinimum),
            ("waf*", Rules),
            ("web-acl-id", Rules),
            ("shield-advanced-protection", Limits),
        ],
    },
    Family {
        controller: "Application Gateway Ingress",
        prefix: "appgw.ingress.kubernetes.io/",
        names: &[
            ("waf-policy-for-path", Rules),
            ("use-private-ip", Addresses),
            ("appgw-ssl-profile", ClientCertificate),
        ],
    },
    Family {
        controller: "Kong",
        prefix: "konghq.com/",
        names: &[("plugins", Rules), ("methods", Rules)],
    },
    Family {
        controller: "Kong",
        prefix: "plugins.konghq.com",
        names: &[("*", Rules)],
    },
    Family {
        controller: "Apache APISIX",
        prefix: "k8s.apisix.apache.org/",
        names: &[
            ("auth-*", Login),
            ("allowlist-source-range", Addresses),
            ("blocklist-source-range", Addresses),
            ("http-allow-methods", Rules),
            ("http-block-methods", Rules),
            ("enable-csrf", Rules),
            ("plugin-config-name", Rules),
        ],
    },
    Family {
        controller: "Higress",
        prefix: "higress.io/",
        names: &[
            ("auth-tls-*", ClientCertificate),
            ("auth-*", Login),
            ("whitelist-source-range", Addresses),
            ("blacklist-source-range", Addresses),
            ("domain-whitelist-source-range", Addresses),
            ("domain-blacklist-source-range", Addresses),
            ("route-limit-*", Limits),
        ],
    },
    Family {
        controller: "Pomerium",
        prefix: "ingress.pomerium.io/",
        names: &[
            ("policy", Login),
            ("allowed_*", Login),
            ("allow_any_authenticated_user", Login),
        ],
    },
    Family {
        controller: "Skipper",
        prefix: "zalando.org/",
        names: &[
            ("skipper-filter", Rules),
            ("skipper-predicate", Rules),
            ("ratelimit", Limits),
        ],
    },
    Family {
        controller: "Emissary",
        prefix: "getambassador.io/",
        names: &[("config", Rules)],
    },
    Family {
        controller: "GKE Ingress",
        prefix: "networking.gke.io/",
        names: &[("v1beta1.FrontendConfig", TlsMinimum)],
    },
    Family {
        controller: "OpenShift",
        prefix: "haproxy.router.openshift.io/",
        names: &[
            ("ip_whitelist", Addresses),
            ("ip_allowlist", Addresses),
            ("rate-limit-*", Limits),
        ],
    },
];

/// Whether this annotation protects something under another controller: whose it is, and by what
/// it protects. A value that switches it off protects nothing.
pub(crate) fn recognise(key: &str, value: &str) -> Option<(&'static str, Protection)> {
    if matches!(
        value.trim().to_ascii_lowercase().as_str(),
        "" | "false" | "none" | "off"
    ) {
        return None;
    }
    if key == "alb.ingress.kubernetes.io/scheme" && value.trim() != "internal" {
        return None;
    }
    FAMILIES.iter().find_map(|family| {
        let name = key.strip_prefix(family.prefix)?;
        let (_, protection) = family.names.iter().find(|(pattern, _)| {
            pattern
                .strip_suffix('*')
                .map_or(name == *pattern, |begin| name.starts_with(begin))
        })?;
        Some((family.controller, *protection))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_protects_elsewhere_is_recognised_and_what_does_not_is_left_alone() {
        let what = |key, value| recognise(key, value).map(|(_, protection)| protection);
        assert_eq!(
            what("nginx.ingress.kubernetes.io/auth-url", "https://a/b"),
            Some(Login)
        );
        assert_eq!(
            what("nginx.ingress.kubernetes.io/auth-tls-secret", "a/b"),
            Some(ClientCertificate)
        );
        assert_eq!(
            what(
                "nginx.ingress.kubernetes.io/whitelist-source-range",
                "10.0.0.0/8"
            ),
            Some(Addresses)
        );
        assert_eq!(
            what("nginx.ingress.kubernetes.io/enable-modsecurity", "false"),
            None
        );
        assert_eq!(
            what("nginx.ingress.kubernetes.io/rewrite-target", "/"),
            None
        );
        assert_eq!(
            what(
                "traefik.ingress.kubernetes.io/router.middlewares",
                "a-b@kubernetescrd"
            ),
            Some(Rules)
        );
        assert_eq!(
            what("alb.ingress.kubernetes.io/scheme", "internet-facing"),
            None
        );
        assert_eq!(
            what("alb.ingress.kubernetes.io/scheme", "internal"),
            Some(Addresses)
        );
        assert_eq!(what("konghq.com/plugins", "key-auth"), Some(Rules));
        assert_eq!(what("plugins.konghq.com", "key-auth"), Some(Rules));
    }
}
