//! Refusals about what edges refer to: backends, policies, certificates, domains, keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use edge_state::{
    apply::RefusalCode,
    command::{Command, Texts},
    state::Role,
};
use model::{
    backend::BackendKind,
    id::{BackendId, HttpResponseId, StaticId},
};

use super::Case;
use crate::world::*;

pub(super) fn backends() -> Vec<Case> {
    let new = || group("new");
    let long = "x".repeat(256);
    let update = |texts| Command::UpdateBackend {
        id: group("user"),
        kind: None,
        texts,
    };
    let fixed = BackendId::Static(StaticId::derived(&["new"]));
    let address = BackendKind::Static {
        address: "nowhere".to_owned(),
    };
    let endpoints = |id: BackendId, endpoint: &str| {
        let endpoint: SocketAddr = endpoint.parse().expect("an address");
        Command::SetEndpoints {
            endpoints: BTreeMap::from([(id, BTreeSet::from([endpoint]))]),
        }
    };
    let put = |id, kind| put_backend(id, None, kind);
    let page_id = || BackendId::HttpResponse(HttpResponseId::derived(&["new"]));
    vec![
        (
            RefusalCode::WrongIdKind,
            user(),
            put(page_id(), labels("app", "new")),
        ),
        (
            RefusalCode::BackendNotFound,
            user(),
            Command::DeleteBackend { id: new() },
        ),
        (
            RefusalCode::BackendInUse,
            user(),
            Command::DeleteBackend { id: group("user") },
        ),
        (
            RefusalCode::BackendDescription,
            user(),
            update(described(256)),
        ),
        (RefusalCode::BackendMetadata, user(), update(noted(4097))),
        (RefusalCode::BackendAddress, user(), put(fixed, address)),
        (
            RefusalCode::TooManyLabels,
            with_limits(|l| l.labels = 0),
            put(new(), labels("app", "new")),
        ),
        (RefusalCode::LabelKey, user(), put(new(), labels("", "new"))),
        (
            RefusalCode::LabelValue,
            user(),
            put(new(), labels("app", &long)),
        ),
        (
            RefusalCode::LabelEquals,
            user(),
            put(new(), labels("a=b", "new")),
        ),
        (
            RefusalCode::ResponseBody,
            with_limits(|l| l.response_body_bytes = 1),
            put(page_id(), page(200, "x-a", "1")),
        ),
        (
            RefusalCode::ResponseStatus,
            user(),
            put(page_id(), page(100, "x-a", "1")),
        ),
        (
            RefusalCode::ResponseHeaderName,
            user(),
            put(page_id(), page(200, "X A", "1")),
        ),
        (
            RefusalCode::ResponseHeaderValue,
            user(),
            put(page_id(), page(200, "x-a", "\r\n")),
        ),
        (
            RefusalCode::NoEndpointsHere,
            user(),
            endpoints(response(), "10.0.0.1:80"),
        ),
        (
            RefusalCode::EndpointsInvalid,
            user(),
            endpoints(group("user"), "0.0.0.0:80"),
        ),
        (
            RefusalCode::TooManyObjects,
            with_limits(|l| l.objects_per_kind = 1),
            put(new(), labels("app", "new")),
        ),
    ]
}

pub(super) fn other_objects() -> Vec<Case> {
    let create = |texts| Command::CreateIpPolicy {
        id: policy("new"),
        texts,
    };
    let domain_texts = |texts| {
        let declared = true;
        let host = host("new.test");
        Command::PutDomain {
            id: domain("new"),
            controller: None,
            host,
            namespace: None,
            heir: None,
            declared,
            texts,
        }
    };
    vec![
        (
            RefusalCode::PolicyNotFound,
            user(),
            Command::DeleteIpPolicy {
                id: policy("missing"),
            },
        ),
        (
            RefusalCode::PolicyInUse,
            user(),
            Command::DeleteIpPolicy { id: policy("user") },
        ),
        (
            RefusalCode::TooManyPolicies,
            with_limits(|l| l.objects_per_kind = 1),
            create(Texts::default()),
        ),
        (RefusalCode::Description, user(), create(described(256))),
        (RefusalCode::Metadata, user(), create(noted(4097))),
        (
            RefusalCode::RuleNotFound,
            user(),
            Command::DeleteIpRule {
                id: rule("missing"),
            },
        ),
        (
            RefusalCode::RuleCidr,
            user(),
            create_rule("user", "new", "::ffff:10.0.0.0/104"),
        ),
        (
            RefusalCode::RuleDuplicate,
            user(),
            create_rule("user", "new", "10.0.0.0/8"),
        ),
        (
            RefusalCode::RuleNotLowest,
            user(),
            create_rule("user", "new", "10.0.0.1/8"),
        ),
        (
            RefusalCode::TooManyRules,
            with_limits(|l| l.rules_per_policy = 1),
            create_rule("user", "new", "0.0.0.0/0"),
        ),
        (
            RefusalCode::CertificateNotFound,
            user(),
            Command::DeleteCertificate {
                id: certificate("missing"),
            },
        ),
        (
            RefusalCode::CertificateInUse,
            user(),
            Command::DeleteCertificate {
                id: certificate("one"),
            },
        ),
        (
            RefusalCode::CertificateInvalid,
            user(),
            put_certificate("new", " ", "KEY"),
        ),
        (
            RefusalCode::KeyInvalid,
            user(),
            put_certificate("new", "CHAIN", ""),
        ),
        (
            RefusalCode::DomainNotFound,
            user(),
            Command::DeleteDomain {
                id: domain("missing"),
            },
        ),
        (
            RefusalCode::DomainTaken,
            user(),
            put_domain("new", "*.example.com", None),
        ),
        (
            RefusalCode::DomainConflict,
            user(),
            put_domain("new", "*.test", None),
        ),
        (
            RefusalCode::DomainDescription,
            user(),
            domain_texts(described(256)),
        ),
        (
            RefusalCode::DomainMetadata,
            user(),
            domain_texts(noted(4097)),
        ),
        (
            RefusalCode::DomainInUse,
            user(),
            Command::DeleteDomain { id: domain("free") },
        ),
        (
            RefusalCode::KeyNotFound,
            user(),
            Command::DeleteKey { id: key("missing") },
        ),
        (
            RefusalCode::TokenTaken,
            user(),
            create_key("new", Role::Write, 1),
        ),
    ]
}
