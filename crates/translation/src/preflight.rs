//! From the modules that a declaration names to the modules that can be served (R2): merged,
//! each valid in itself, valid together, with everything that they refer to resolved.

use std::collections::BTreeSet;

use model::{
    declaration::PolicyName,
    module::{EdgeDemands, ModuleKind, Modules},
    secret::{Digest, Secret},
};
use resources::{
    module_set::{
        CircuitBreaker, Compression, Headers, IpRestriction, MutualTls, Oidc, Saml, SecretKeyRef,
        TlsTermination, WebhookVerification,
    },
    oauth::OAuth,
    problem::FieldPath,
    snapshot::ObjectKey,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    codes::Code,
    digest::Digester,
    findings::{Findings, Site, Verdict},
    modules,
    references::References,
};

/// A module as one object writes it.
#[derive(Clone, Debug)]
pub(crate) struct Written<'a, T> {
    pub(crate) site: Site<'a>,
    pub(crate) field: FieldPath,
    pub(crate) content: T,
}

/// A traffic policy's document in either form, and whether it is switched on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PolicyDocument {
    pub(crate) enabled: bool,
    pub(crate) document: Value,
}

/// The modules of one route, each from the object that decides it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen<'a> {
    pub(crate) circuit_breaker: Option<Written<'a, &'a CircuitBreaker>>,
    pub(crate) compression: Option<Written<'a, &'a Compression>>,
    pub(crate) headers: Option<Written<'a, &'a Headers>>,
    pub(crate) ip_restriction: Option<Written<'a, &'a IpRestriction>>,
    pub(crate) oauth: Option<Written<'a, &'a OAuth>>,
    pub(crate) policy: Option<Written<'a, PolicyDocument>>,
    pub(crate) oidc: Option<Written<'a, &'a Oidc>>,
    pub(crate) saml: Option<Written<'a, &'a Saml>>,
    pub(crate) tls_termination: Option<Written<'a, TlsTermination>>,
    pub(crate) mutual_tls: Option<Written<'a, &'a MutualTls>>,
    pub(crate) webhook_verification: Option<Written<'a, &'a WebhookVerification>>,
}

/// The modules of one route, judged.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// The route's own modules: whole only if `route` is sound.
    pub(crate) modules: Modules<PolicyName>,
    /// The edge-wide ones: whole only if `edge` is sound.
    pub(crate) demands: EdgeDemands,
    /// Everything that is named, valid or not.
    pub(crate) kinds: BTreeSet<ModuleKind>,
    /// What was found about the route's own modules.
    pub(crate) route: Findings,
    /// What was found about the edge-wide ones: it concerns every route of the host (R13).
    pub(crate) edge: Findings,
    /// A digest of all that was written, sound or not, secrets included.
    pub(crate) content: Digest,
}

/// What is gathered while the modules of one route are judged.
struct Bench<'r, 'a> {
    references: &'r References<'a>,
    namespace: &'r str,
    findings: Findings,
    kinds: BTreeSet<ModuleKind>,
    content: Digester,
}

/// One module before its judge: where it is written, and what its findings go to.
pub(crate) struct Judge<'b, 'a> {
    pub(crate) references: &'b References<'a>,
    /// References are resolved here.
    pub(crate) namespace: &'b str,
    pub(crate) site: Site<'b>,
    pub(crate) findings: &'b mut Findings,
    kinds: &'b mut BTreeSet<ModuleKind>,
    content: &'b mut Digester,
}

/// Judges the modules of one route. References are resolved in `namespace`.
pub(crate) fn judge(references: &References<'_>, namespace: &str, chosen: &Chosen<'_>) -> Judged {
    use ModuleKind as Kind;
    let mut bench = Bench {
        references,
        namespace,
        findings: Findings::default(),
        kinds: BTreeSet::new(),
        content: Digester::new(references.input.key, "modules"),
    };
    let Chosen {
        circuit_breaker,
        compression,
        headers,
        ip_restriction,
        oauth,
        policy,
        oidc,
        saml,
        tls_termination,
        mutual_tls,
        webhook_verification,
    } = chosen;
    let demands = EdgeDemands {
        tls_minimum: bench.run(
            tls_termination,
            Kind::TlsTermination,
            modules::tls::termination,
        ),
        mutual_tls: bench.run(mutual_tls, Kind::MutualTls, modules::tls::mutual),
    };
    let edge = std::mem::take(&mut bench.findings);
    let headers = headers
        .as_ref()
        .map(|it| modules::headers::judge(&mut bench.at(it.site), it));
    let (request_headers, response_headers) = headers.unwrap_or_default();
    let policy = policy.as_ref().filter(|it| it.content.enabled).cloned();
    let compression = compression
        .as_ref()
        .filter(|it| it.content.enabled)
        .cloned();
    let hooks = webhook_verification;
    let modules = Modules {
        ip_restriction: bench.run(
            ip_restriction,
            Kind::IpRestriction,
            modules::ip_restriction::judge,
        ),
        user_agent_filter: None,
        webhook_verification: bench.run(hooks, Kind::WebhookVerification, modules::webhook::judge),
        oauth: bench.run(oauth, Kind::Oauth, modules::oauth::judge),
        oidc: bench.run(oidc, Kind::Oidc, modules::oidc::judge),
        saml: bench.run(saml, Kind::Saml, modules::saml::judge),
        traffic_policy: bench.run(&policy, Kind::TrafficPolicy, modules::policy::judge),
        circuit_breaker: bench.run(
            circuit_breaker,
            Kind::CircuitBreaker,
            modules::circuit_breaker::judge,
        ),
        websocket_tcp_converter: None,
        request_headers,
        response_headers,
        compression: bench.run(&compression, Kind::Compression, modules::compression::judge),
    };
    one_login(chosen, &mut bench.findings);
    let Bench {
        references: _,
        namespace: _,
        findings: route,
        kinds,
        content,
    } = bench;
    Judged {
        modules,
        demands,
        kinds,
        route,
        edge,
        content: content.finish(),
    }
}

impl<'a> Bench<'_, 'a> {
    /// Puts a module that is written there before its judge.
    fn at<'b>(&'b mut self, site: Site<'b>) -> Judge<'b, 'a> {
        let Self {
            references,
            namespace,
            findings,
            kinds,
            content,
        } = self;
        Judge {
            references,
            namespace,
            site,
            findings,
            kinds,
            content,
        }
    }

    /// Judges one module, if it is named. A module that comes to nothing without a word would be
    /// left out of the set: that is an error, whatever its judge thought (R2).
    fn run<'w, T: Serialize, M>(
        &mut self,
        written: &Option<Written<'w, T>>,
        kind: ModuleKind,
        judge: impl FnOnce(&mut Judge<'_, '_>, &Written<'w, T>) -> Option<M>,
    ) -> Option<M> {
        let written = written.as_ref()?;
        let mut at = self.at(written.site);
        at.names(kind, &written.field, &written.content);
        let module = judge(&mut at, written);
        // A TLS termination without a minimum demands nothing.
        let may_be_nothing = kind == ModuleKind::TlsTermination;
        if module.is_none() && !may_be_nothing && at.findings.verdict() == Verdict::Sound {
            let message = format!("{} cannot be used as it is written", kind.name());
            at.report(
                Code::ModuleInvalid,
                &written.field,
                message,
                "take it out, or write it anew",
            );
        }
        module
    }
}

impl Judge<'_, '_> {
    /// A module is named: it takes part in the digest, and must be enforceable.
    pub(crate) fn names<C: Serialize>(&mut self, kind: ModuleKind, at: &FieldPath, content: &C) {
        self.kinds.insert(kind);
        self.content.add(kind.name(), content);
        self.content.add("of", self.site.object);
        let name = kind.name();
        match &self.references.input.options.enforceable {
            Some(enforceable) if enforceable.contains(&kind) => {}
            Some(_) => {
                let message =
                    format!("{name} is not enforced by this edge yet, so its routes stay closed");
                let remedy =
                    "wait for a version of the edge that enforces it, or take the module out";
                self.report(Code::ModuleNotEnforced, at, message, remedy);
            }
            None => {
                let message = format!("not checked: whether the edge enforces {name}");
                self.report(Code::NotChecked, at, message, "ask an edge with --edge URL");
            }
        }
    }

    /// Makes a finding about a field of the object that the module is written in.
    pub(crate) fn report(
        &mut self,
        code: Code,
        field: &FieldPath,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings
            .push(self.site.finding(code, field, message, remedy));
    }

    /// A text that must not be longer than the edge takes.
    pub(crate) fn bounded(&mut self, field: &FieldPath, text: &str) {
        if text.len() > modules::TEXT_BYTES_MAX {
            let message = format!(
                "a text of {} bytes is longer than {}",
                text.len(),
                modules::TEXT_BYTES_MAX
            );
            self.report(Code::ModuleInvalid, field, message, "write a shorter one");
        }
    }

    /// A list that must not be longer than the edge takes, of texts that must not be either.
    pub(crate) fn bounded_list(&mut self, field: &FieldPath, list: &[String]) {
        if list.len() > modules::LIST_ENTRIES_MAX {
            let message = format!(
                "a list of {} entries is longer than {}",
                list.len(),
                modules::LIST_ENTRIES_MAX
            );
            self.report(Code::ModuleInvalid, field, message, "write a shorter one");
        }
        for (index, text) in list.iter().enumerate() {
            self.bounded(&field.item(index), text);
        }
    }

    /// The value of a Secret's key, as text.
    pub(crate) fn secret(&mut self, field: &FieldPath, named: &SecretKeyRef) -> Option<Secret> {
        let key = ObjectKey::new(self.namespace, named.name.as_str());
        let bytes = self
            .references
            .secret(&key, &named.key, (self.site, field), self.findings)?;
        self.content.add("secret", bytes);
        match std::str::from_utf8(bytes.expose()) {
            Ok(text)
                if text.len() <= modules::TEXT_BYTES_MAX && !text.contains(['\r', '\n', '\0']) =>
            {
                Some(Secret::new(text.to_owned()))
            }
            Ok(_) | Err(_) => {
                let message = format!(
                    "the key {} of Secret {key} is not one line of text of at most {} bytes",
                    named.key,
                    modules::TEXT_BYTES_MAX
                );
                let remedy = "store the value alone; a line break at its end often comes from `echo`: use `printf`";
                self.report(Code::SecretInvalid, field, message, remedy);
                None
            }
        }
    }

    /// Something else that the modules are made of takes part in the digest.
    pub(crate) fn content<C: Serialize + ?Sized>(&mut self, name: &str, content: &C) {
        self.content.add(name, content);
    }
}

/// OAuth, OIDC and SAML exclude one another on a route.
fn one_login(chosen: &Chosen<'_>, findings: &mut Findings) {
    let logins: Vec<_> = [
        chosen
            .oauth
            .as_ref()
            .map(|w| (ModuleKind::Oauth, w.site, &w.field)),
        chosen
            .oidc
            .as_ref()
            .map(|w| (ModuleKind::Oidc, w.site, &w.field)),
        chosen
            .saml
            .as_ref()
            .map(|w| (ModuleKind::Saml, w.site, &w.field)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let [(first, ..), others @ ..] = logins.as_slice() {
        for (kind, site, field) in others {
            let message = format!(
                "{} and {} on one route: nobody could pass both",
                first.name(),
                kind.name()
            );
            findings.push(site.finding(Code::LoginConflict, field, message, "keep one of them"));
        }
    }
}
