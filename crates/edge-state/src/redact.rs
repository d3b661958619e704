//! What a reader of the whole state gets to see of it (R9, R20).

use std::sync::Arc;

use model::secret::{Digest, Secret};

use crate::state::{ApiKey, Certificate, Declared, Edge, EdgeState, Record, Role, Route};

impl EdgeState {
    /// The same state without a secret in it: certificate keys and the secrets of modules are
    /// empty for everybody. The digests of declarations and of API keys are for controllers alone:
    /// others get none, so that nobody can try guesses against them.
    #[must_use]
    pub fn redacted(&self, reader: Role) -> Self {
        let Self {
            revision,
            term,
            edges,
            backends,
            ip_policies,
            certificates,
            domains,
            keys,
        } = self;
        Self {
            revision: *revision,
            term: *term,
            edges: edges
                .iter()
                .map(|(id, edge)| (id.clone(), redacted_edge(edge, reader)))
                .collect(),
            backends: backends.clone(),
            ip_policies: ip_policies.clone(),
            certificates: certificates
                .iter()
                .map(|(id, certificate)| (id.clone(), Arc::new(without_key(certificate))))
                .collect(),
            domains: domains.clone(),
            keys: keys
                .iter()
                .map(|(id, key)| (id.clone(), redacted_key(key, reader)))
                .collect(),
        }
    }
}

fn without_key(certificate: &Certificate) -> Certificate {
    let Certificate {
        meta,
        controller,
        chain_pem,
        key_pem: _,
    } = certificate;
    Certificate {
        meta: meta.clone(),
        controller: controller.clone(),
        chain_pem: chain_pem.clone(),
        key_pem: Secret::new(String::new()),
    }
}

fn redacted_key(key: &Arc<ApiKey>, reader: Role) -> Arc<ApiKey> {
    match reader {
        Role::Controller => Arc::clone(key),
        Role::Read | Role::Write => Arc::new(ApiKey {
            meta: key.meta.clone(),
            role: key.role,
            token_digest: Digest([0; 32]),
        }),
    }
}

/// Shares the edge as it is where there is nothing to hide: a controller reads often.
fn redacted_edge(edge: &Arc<Edge>, reader: Role) -> Arc<Edge> {
    let hides = |route: &Route| {
        route.modules.secrets().next().is_some()
            || (reader != Role::Controller && route.record.is_some())
    };
    if !edge.routes.values().any(hides) {
        return Arc::clone(edge);
    }
    let mut redacted = Edge::clone(edge);
    for route in redacted.routes.values_mut() {
        route.modules.hide_secrets();
        if reader != Role::Controller
            && let Some(record) = &mut route.record
        {
            hide_digests(record);
        }
    }
    Arc::new(redacted)
}

fn hide_digests(record: &mut Record) {
    let hide = |declared: &mut Declared| declared.digest = None;
    record.wanted.as_mut().map(hide);
    record.serving.as_mut().map(hide);
}
