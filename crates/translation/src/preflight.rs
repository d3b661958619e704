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
    findings::{Findings, Site},
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

/// What one judgement has at hand.
pub(crate) struct Judge<'r, 'a> {
    pub(crate) references: &'r References<'a>,
    pub(crate) namespace: &'r str,
    pub(crate) findings: Findings,
    kinds: BTreeSet<ModuleKind>,
    content: Digester,
}

/// Judges the modules of one route. References are resolved in `namespace`.
pub(crate) fn judge(references: &References<'_>, namespace: &str, chosen: &Chosen<'_>) -> Judged {
    let mut judge = Judge {
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
        tls_minimum: judge
            .run(
                tls_termination,
                ModuleKind::TlsTermination,
                modules::tls::termination,
            )
            .flatten(),
        mutual_tls: judge
            .run(mutual_tls, ModuleKind::MutualTls, modules::tls::mutual)
            .flatten(),
    };
    let edge = std::mem::take(&mut judge.findings);
    let (request_headers, response_headers) = modules::headers::judge(&mut judge, headers.as_ref());
    let modules = Modules {
        ip_restriction: judge
            .run(
                ip_restriction,
                ModuleKind::IpRestriction,
                modules::ip_restriction::judge,
            )
            .flatten(),
        user_agent_filter: None,
        webhook_verification: judge
            .run(
                webhook_verification,
                ModuleKind::WebhookVerification,
                modules::webhook::judge,
            )
            .flatten(),
        oauth: judge
            .run(oauth, ModuleKind::Oauth, modules::oauth::judge)
            .flatten(),
        oidc: judge
            .run(oidc, ModuleKind::Oidc, modules::oidc::judge)
            .flatten(),
        saml: judge
            .run(saml, ModuleKind::Saml, modules::saml::judge)
            .flatten(),
        traffic_policy: modules::policy::judge(&mut judge, policy.as_ref()),
        circuit_breaker: judge
            .run(
                circuit_breaker,
                ModuleKind::CircuitBreaker,
                modules::circuit_breaker::judge,
            )
            .flatten(),
        websocket_tcp_converter: None,
        request_headers,
        response_headers,
        compression: modules::compression::judge(&mut judge, compression.as_ref()),
    };
    judge.one_login(chosen);
    let Judge {
        findings: route,
        kinds,
        content,
        ..
    } = judge;
    Judged {
        modules,
        demands,
        kinds,
        route,
        edge,
        content: content.finish(),
    }
}

impl Judge<'_, '_> {
    /// Judges one module that is named.
    fn run<'w, T: Serialize + Clone, M>(
        &mut self,
        written: &Option<Written<'w, T>>,
        kind: ModuleKind,
        judge: impl FnOnce(&mut Self, &Written<'w, T>) -> M,
    ) -> Option<M> {
        let written = written.as_ref()?;
        self.names(kind, written, &written.content);
        Some(judge(self, written))
    }

    /// A module is named: it takes part in the digest, and must be enforceable.
    pub(crate) fn names<T, C: Serialize>(
        &mut self,
        kind: ModuleKind,
        written: &Written<'_, T>,
        content: &C,
    ) {
        self.kinds.insert(kind);
        self.content.add(kind.name(), content);
        self.content.add("of", written.site.object);
        let name = kind.name();
        match &self.references.input.options.enforceable {
            Some(enforceable) if enforceable.contains(&kind) => {}
            Some(_) => self.report(
                written,
                Code::ModuleNotEnforced,
                &written.field,
                format!("{name} is not enforced by this edge yet, so its routes stay closed"),
                "wait for a version of the edge that enforces it, or take the module out",
            ),
            None => self.report(
                written,
                Code::NotChecked,
                &written.field,
                format!("not checked: whether the edge enforces {name}"),
                "ask an edge with --edge URL",
            ),
        }
    }

    /// Makes a finding about a field of the object that the module is written in.
    pub(crate) fn report<T>(
        &mut self,
        written: &Written<'_, T>,
        code: Code,
        field: &FieldPath,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.findings
            .push(written.site.finding(code, field, message, remedy));
    }

    /// A text that must not be longer than the edge takes.
    pub(crate) fn bounded<T>(&mut self, written: &Written<'_, T>, field: &FieldPath, text: &str) {
        if text.len() > modules::TEXT_BYTES_MAX {
            let message = format!(
                "a text of {} bytes is longer than {}",
                text.len(),
                modules::TEXT_BYTES_MAX
            );
            self.report(
                written,
                Code::ModuleInvalid,
                field,
                message,
                "write a shorter one",
            );
        }
    }

    /// A list that must not be longer than the edge takes, of texts that must not be either.
    pub(crate) fn bounded_list<T>(
        &mut self,
        written: &Written<'_, T>,
        field: &FieldPath,
        list: &[String],
    ) {
        if list.len() > modules::LIST_ENTRIES_MAX {
            let message = format!(
                "a list of {} entries is longer than {}",
                list.len(),
                modules::LIST_ENTRIES_MAX
            );
            self.report(
                written,
                Code::ModuleInvalid,
                field,
                message,
                "write a shorter one",
            );
        }
        for (index, text) in list.iter().enumerate() {
            self.bounded(written, &field.item(index), text);
        }
    }

    /// The value of a Secret's key, as text.
    pub(crate) fn secret<T>(
        &mut self,
        written: &Written<'_, T>,
        field: &FieldPath,
        named: &SecretKeyRef,
    ) -> Option<Secret> {
        let key = ObjectKey::new(self.namespace, named.name.as_str());
        let bytes =
            self.references
                .secret(&key, &named.key, (written.site, field), &mut self.findings)?;
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
                self.report(written, Code::SecretInvalid, field, message, remedy);
                None
            }
        }
    }

    /// Something else that the modules are made of takes part in the digest.
    pub(crate) fn content<C: Serialize + ?Sized>(&mut self, name: &str, content: &C) {
        self.content.add(name, content);
    }

    /// OAuth, OIDC and SAML exclude one another on a route.
    fn one_login(&mut self, chosen: &Chosen<'_>) {
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
                self.findings.push(site.finding(
                    Code::LoginConflict,
                    field,
                    message,
                    "keep one of them",
                ));
            }
        }
    }
}
