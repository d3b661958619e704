//! `/backends/{kind}`

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::Path;
use edge_api::{
    backend::{BackendWrite, HttpResponse, Kind, StaticAddress, TunnelGroup, read_endpoints},
    error::ApiError,
};
use edge_state::{
    command::Command,
    state::{self, EdgeState},
};
use edge_store::Published;
use model::id::{BackendId, HttpResponseId, NotAnId, StaticId, TunnelGroupId};

use crate::{
    answer::{Answer, Failure, Outcome, internal},
    call::Call,
    edges::texts,
    ids, page,
    views::{self, Backend},
};

fn kind_of(call: &Call, text: &str) -> Result<Kind, Failure> {
    Kind::parse(text).ok_or_else(|| ApiError::no_such_call(&call.path).into())
}

/// Reads an id of this kind of backend.
fn parse(kind: Kind, text: &str) -> Result<BackendId, NotAnId> {
    match kind {
        Kind::TunnelGroup => TunnelGroupId::parse(text).map(BackendId::TunnelGroup),
        Kind::HttpResponse => HttpResponseId::parse(text).map(BackendId::HttpResponse),
        Kind::Static => StaticId::parse(text).map(BackendId::Static),
    }
}

fn read_id(call: &Call, kind: &str, id: &str) -> Result<(Kind, BackendId), Failure> {
    let kind = kind_of(call, kind)?;
    Ok((kind, page::id(id, |text| parse(kind, text))?))
}

fn backend<'a>(state: &'a EdgeState, id: &BackendId) -> Result<&'a state::Backend, Failure> {
    state
        .backends
        .get(id)
        .map(AsRef::as_ref)
        .ok_or_else(|| ApiError::not_found().into())
}

fn show(call: &Call, published: &Published, id: &BackendId) -> Result<serde_json::Value, Failure> {
    let body = match views::backend(&call.base, id, backend(&published.state, id)?) {
        Backend::TunnelGroup(body) => serde_json::to_value(body),
        Backend::HttpResponse(body) => serde_json::to_value(body),
        Backend::Static(body) => serde_json::to_value(body),
    };
    body.map_err(|error| internal(&error))
}

pub(crate) async fn list(Path(kind): Path<String>, call: Call) -> Outcome {
    let kind = kind_of(&call, &kind)?;
    let published = call.state();
    let items = published.state.backends.iter();
    let view = |id: &BackendId, backend| views::backend(&call.base, id, backend);
    let parse = |text: &str| parse(kind, text);
    match kind {
        Kind::TunnelGroup => page::answer(&call, parse, items, |id, b| match view(id, b) {
            Backend::TunnelGroup(body) => Some::<TunnelGroup>(body),
            Backend::HttpResponse(_) | Backend::Static(_) => None,
        }),
        Kind::HttpResponse => page::answer(&call, parse, items, |id, b| match view(id, b) {
            Backend::HttpResponse(body) => Some::<HttpResponse>(body),
            Backend::TunnelGroup(_) | Backend::Static(_) => None,
        }),
        Kind::Static => page::answer(&call, parse, items, |id, b| match view(id, b) {
            Backend::Static(body) => Some::<StaticAddress>(body),
            Backend::TunnelGroup(_) | Backend::HttpResponse(_) => None,
        }),
    }
}

pub(crate) async fn create(Path(kind): Path<String>, call: Call) -> Outcome {
    let kind = kind_of(&call, &kind)?;
    let BackendWrite {
        texts: written,
        kind: content,
    } = BackendWrite::read(call.members()?, kind, None)?;
    // Absent only in a PATCH.
    let content = content.ok_or_else(|| Failure::from(ApiError::not_found()))?;
    let bits = ids::bits()?;
    let id = match kind {
        Kind::TunnelGroup => BackendId::TunnelGroup(TunnelGroupId::from_bits(bits)),
        Kind::HttpResponse => BackendId::HttpResponse(HttpResponseId::from_bits(bits)),
        Kind::Static => BackendId::Static(StaticId::from_bits(bits)),
    };
    let command = Command::PutBackend {
        id: id.clone(),
        controller: None,
        kind: content,
        service: None,
        endpoints: BTreeSet::new(),
        texts: texts(written),
    };
    let _turn = call.turn().await;
    let applied = call.apply(command).await?;
    Ok(Answer::created(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn get(Path((kind, id)): Path<(String, String)>, call: Call) -> Outcome {
    call.no_parameters()?;
    let (_, id) = read_id(&call, &kind, &id)?;
    Answer::ok(&show(&call, &call.state(), &id)?)
}

pub(crate) async fn update(Path((kind, id)): Path<(String, String)>, call: Call) -> Outcome {
    let (kind, id) = read_id(&call, &kind, &id)?;
    let members = call.members()?;
    let _turn = call.turn().await;
    let published = call.state();
    let old = &backend(&published.state, &id)?.kind;
    let BackendWrite {
        texts: written,
        kind,
    } = BackendWrite::read(members, kind, Some((id.as_str(), old)))?;
    let command = Command::UpdateBackend {
        id: id.clone(),
        kind,
        texts: texts(written),
    };
    let applied = call.apply(command).await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

/// The extension: where a tunnel group is reached at the moment. No route gets another generation.
pub(crate) async fn set_endpoints(Path((kind, id)): Path<(String, String)>, call: Call) -> Outcome {
    if kind_of(&call, &kind)? != Kind::TunnelGroup {
        return Err(ApiError::no_such_call(&call.path).into());
    }
    let (_, id) = read_id(&call, &kind, &id)?;
    let endpoints = read_endpoints(call.members()?)?;
    let _turn = call.turn().await;
    let command = Command::SetEndpoints {
        endpoints: BTreeMap::from([(id.clone(), endpoints)]),
    };
    let applied = call.apply(command).await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete(Path((kind, id)): Path<(String, String)>, call: Call) -> Outcome {
    call.no_parameters()?;
    let (_, id) = read_id(&call, &kind, &id)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteBackend { id: id.clone() })
        .await?;
    Ok(Answer::done().about(id))
}
