//! Every finding that translation can make, declared once: its stable name, what kind of trouble
//! it is, and one sentence for the reference page. A test demands a golden case for each.
//!
//! What is wrong with an object in itself has the codes of [`resources::problem::ProblemCode`].

use model::diagnostic::{Cause, Severity};

macro_rules! codes {
    ($($variant:ident = $name:literal, $cause:ident, $summary:literal;)*) => {
        /// A kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $summary] $variant,)*
        }

        impl Code {
            /// Every code, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What kind of trouble it is; an option may make a notice an error.
            #[must_use]
            pub const fn cause(self) -> Cause {
                match self { $(Self::$variant => Cause::$cause,)* }
            }

            /// One sentence for the reference page.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }
        }
    };
}

codes! {
    // What is handled at all.
    NotHandled = "not-handled", Notice, "An Ingress is of no class that is served here; nothing of it is.";
    LegacyClass = "legacy-class-annotation", Invalid, "An Ingress names its class by the retired annotation kubernetes.io/ingress.class.";
    ClassMissing = "ingress-class-missing", Missing, "The IngressClass of an Ingress that has been served does not exist.";
    NotReadYet = "not-read-yet", Pending, "An object that is needed has not been read yet, or could not be.";
    Unreadable = "hosts-unreadable", Invalid, "An object does not decode, and not all of its hosts and paths could be made out.";
    FileUnreadable = "file-unreadable", Pending, "A file cannot be read as manifests; what it held is pending.";
    KindNotEnforced = "kind-not-enforced", Unenforceable, "The edge does not serve objects of this kind yet.";
    UpstreamOwned = "upstream-owned", Notice, "An object was made by the upstream controller; it is left alone until it is adopted.";

    // Ingress and HTTPSEdge.
    NothingDeclared = "nothing-declared", Invalid, "An Ingress or edge declares no host or no route.";
    RuleWithoutHost = "rule-without-host", Invalid, "A rule names no host, and an edge answers for hosts.";
    RuleWithoutPaths = "rule-without-paths", Invalid, "A rule has no paths, and there is no default backend that could answer.";
    DefaultBackendWithoutHost = "default-backend-without-host", Invalid, "A default backend stands in an Ingress without hosts.";
    HostInvalid = "host-invalid", Invalid, "A host is no host name and no wildcard of one label.";
    HostPort = "host-port", Invalid, "An HTTPS edge is declared for another port than 443.";
    PathInvalid = "path-invalid", Invalid, "A path cannot be matched as it is written.";
    PathExpression = "path-expression", Invalid, "A path holds characters of an expression, and paths are literal here.";
    PathReserved = "path-reserved", Invalid, "A path lies where the edge itself answers.";
    RouteConflict = "route-conflict", Conflict, "Another declaration of the same host and path stands before this one.";

    // Who may declare what (R20).
    HostConflict = "host-conflict", Conflict, "The host belongs to another namespace.";
    HostNotAllowed = "host-not-allowed", Conflict, "The namespace may not claim this host (--hosts).";
    HandOverConflict = "hand-over-conflict", Notice, "Two declarations of one host name different namespaces in portcullis.dev/hand-over; the older one counts.";
    HostContested = "host-contested", Notice, "Several namespaces claim a host that nobody owned before.";

    // What was named on the command line.
    NothingFound = "nothing-found", Notice, "A path that was named holds no manifest, or none of a kind that is used here.";

    // Annotations.
    AnnotationEmpty = "annotation-empty", Invalid, "An annotation is there and says nothing.";
    AnnotationInvalid = "annotation-invalid", Invalid, "The value of an annotation cannot be read.";
    AnnotationRetired = "annotation-retired", Invalid, "An annotation of an earlier version protects nothing any more.";
    AnnotationUnknown = "annotation-unknown", Invalid, "There is no such annotation.";
    ForeignProtection = "foreign-protection", Notice, "A protective annotation of another controller has no effect here (an error with --foreign-protection refuse).";

    // Module sets and what they refer to.
    ModuleSetMissing = "module-set-missing", Missing, "A module set that is named does not exist.";
    ModuleReplaced = "module-replaced", Notice, "A later module set replaces an access module of an earlier one.";
    ModuleNotEnforced = "module-not-enforced", Unenforceable, "The edge does not enforce this module yet.";
    NotChecked = "not-checked", Notice, "Only an edge can tell whether it enforces this; no edge was asked.";
    LoginConflict = "login-conflict", Invalid, "More than one of oauth, oidc and saml on one route.";
    EveryoneAdmitted = "everyone-admitted", Notice, "A login without lists lets in everybody whom the provider knows.";
    ModuleInvalid = "module-invalid", Invalid, "A value in a module is not acceptable to the edge.";
    ClientIncomplete = "oauth-client-incomplete", Invalid, "An OAuth client id without its secret, or the reverse.";
    SharedApplication = "oauth-shared-application", Invalid, "A module uses the operator's OAuth application in a way that it does not allow.";
    HeaderInvalid = "header-invalid", Invalid, "A header cannot be added or removed.";
    HeaderVariable = "header-variable", Unenforceable, "A header value holds a variable, and the edge does not fill in variables yet.";
    TrafficPolicyMissing = "traffic-policy-missing", Missing, "A traffic policy that is named does not exist.";
    TrafficPolicyTwice = "traffic-policy-twice", Invalid, "A route has two traffic policies.";
    PolicyMissing = "ip-policy-missing", Missing, "An IP policy that is named does not exist.";
    NobodyAllowed = "nobody-allowed", Invalid, "None of the IP policies of a restriction allows anything.";
    SecretMissing = "secret-missing", Missing, "A Secret that is named does not exist.";
    SecretKeyMissing = "secret-key-missing", Missing, "A Secret lacks the key that is named.";
    SecretEmpty = "secret-empty", Missing, "The value of a Secret's key is empty or blank.";
    SecretInvalid = "secret-invalid", Invalid, "The value of a Secret's key cannot be used.";

    // Edge-wide modules (R13).
    TlsMinimumRaised = "tls-minimum-raised", Notice, "A lowest TLS version below the one that the edge speaks at all.";
    TlsTerminateAt = "tls-terminate-at", Invalid, "TLS is to end elsewhere than at the edge, which an HTTPS edge cannot do.";
    AuthorityMissing = "authority-missing", Missing, "A certificate authority for client certificates does not exist.";
    AuthorityInvalid = "authority-invalid", Invalid, "A certificate authority for client certificates cannot be read.";
    AuthoritiesDiffer = "authorities-differ", Invalid, "Two declarations of one host demand client certificates of different authorities.";

    // Serving certificates.
    CertificateMissing = "certificate-missing", Absent, "The Secret with a host's certificate does not exist or is not complete.";
    CertificateInvalid = "certificate-invalid", Invalid, "A host's certificate cannot be read, or its key is another's.";
    CertificateNames = "certificate-names", Notice, "A certificate does not name the host that it is shown for.";
    CertificateConflict = "certificate-conflict", Notice, "Two Ingresses bring different certificates for one host; the older one's is shown.";
    TlsHostUnused = "tls-host-unused", Notice, "A host under spec.tls is in no rule.";

    // Backends.
    BackendInvalid = "backend-invalid", Invalid, "A backend is not a Service and its port.";
    BackendNamespace = "backend-namespace", Invalid, "A backend lies in another namespace.";
    ServiceMissing = "service-missing", Absent, "The Service of a backend does not exist.";
    ServicePortMissing = "service-port-missing", Absent, "The Service has no such port.";
    ServiceInvalid = "service-invalid", Invalid, "The Service of a backend does not say clearly how it is spoken to.";
    ExternalName = "external-name", Invalid, "The Service stands for a name outside the cluster, which is not allowed.";
    NoEndpoints = "no-ready-endpoints", Notice, "The Service has no ready endpoint; the route is open and answers 503.";
    ProtocolNotEnforced = "backend-protocol-not-enforced", Unenforceable, "The Service is to be spoken to in a protocol that the edge does not speak yet.";
    NoTunnels = "no-tunnels", Unenforceable, "Only a tunnel could serve this, and the edge has no tunnels yet.";
}

impl Code {
    /// How bad it is, unless an option says otherwise.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self.cause() {
            Cause::Notice => Severity::Warning,
            Cause::Invalid
            | Cause::Missing
            | Cause::Absent
            | Cause::Pending
            | Cause::Unenforceable
            | Cause::Conflict => Severity::Error,
        }
    }
}
