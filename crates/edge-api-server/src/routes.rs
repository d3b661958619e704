//! `/edges/https/{edge_id}/routes`

use axum::extract::Path;
use edge_api::{
    error::ApiError,
    module::BackendModule,
    route::{RoutePatch, RouteReplacement},
};
use edge_state::{
    apply::RefusalCode,
    command::{self, Command, RouteSpec},
    state::{Edge, EdgeState, PolicyRef, Route, RouteBackend},
};
use edge_store::Published;
use model::{
    id::{EdgeId, IpPolicyId, RouteId},
    module::Modules,
};

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    edges::{edge, edge_id, texts},
    ids, page, views,
};

/// The route with these ids.
pub(crate) fn route<'a>(
    state: &'a EdgeState,
    edge_id: &EdgeId,
    id: &RouteId,
) -> Result<&'a Route, Failure> {
    edge(state, edge_id)?
        .routes
        .get(id)
        .ok_or_else(|| ApiError::not_found().into())
}

/// Reads both ids from the path.
pub(crate) fn route_ids(edge: &str, route: &str) -> Result<(EdgeId, RouteId), Failure> {
    Ok((edge_id(edge)?, page::id(route, RouteId::parse)?))
}

fn show(
    call: &Call,
    published: &Published,
    edge_id: &EdgeId,
    id: &RouteId,
) -> Result<edge_api::route::HttpsRoute, Failure> {
    Ok(views::route(
        &call.base,
        edge_id,
        id,
        route(&published.state, edge_id, id)?,
    ))
}

pub(crate) fn backend(module: BackendModule) -> RouteBackend {
    let BackendModule { enabled, id } = module;
    RouteBackend { enabled, id }
}

/// A patch as commands take it; the match is another matter.
pub(crate) fn patch(written: RoutePatch) -> command::RoutePatch {
    let RoutePatch {
        texts: written_texts,
        match_type: _,
        path: _,
        modules,
        backend: module,
    } = written;
    command::RoutePatch {
        texts: texts(written_texts),
        place: None,
        modules,
        backend: module.map(backend),
    }
}

/// A route for a whole edge: where the edge has the match already, it stays the same route.
pub(crate) fn route_spec(
    state: &EdgeState,
    edge: Option<&Edge>,
    written: RouteReplacement,
) -> Result<RouteSpec, Failure> {
    let RouteReplacement { id, place, content } = written;
    let RoutePatch {
        texts,
        match_type: _,
        path: _,
        modules,
        backend: module,
    } = content;
    let same = |edge: &Edge| {
        edge.routes
            .iter()
            .find(|(_, route)| route.place == place)
            .map(|(id, _)| id.clone())
    };
    let id = match id.or_else(|| edge.and_then(same)) {
        Some(id) => id,
        None => RouteId::from_bits(ids::bits()?),
    };
    Ok(RouteSpec {
        id,
        place,
        modules: newest(state, modules)?,
        backend: module.map(backend),
        also_refuse: std::collections::BTreeSet::new(),
        description: texts.description.unwrap_or_default(),
        metadata: texts.metadata.unwrap_or_default(),
        record: None,
    })
}

/// The same modules with the newest version of each policy.
fn newest(state: &EdgeState, modules: Modules<IpPolicyId>) -> Result<Modules<PolicyRef>, Failure> {
    modules.with_policies(|id| match state.ip_policies.get(&id) {
        Some(policy) => Ok(PolicyRef {
            version: policy.newest,
            id,
        }),
        None => {
            let code = RefusalCode::UnknownPolicy;
            let message = format!("there is no IP policy {id}");
            Err(ApiError::other(code.code(), code.status(), message).into())
        }
    })
}

pub(crate) async fn create(Path(edge): Path<String>, call: Call) -> Outcome {
    let edge = edge_id(&edge)?;
    let RouteReplacement {
        id: _,
        place,
        content,
    } = RouteReplacement::read_create(call.members()?, edge.as_str())?;
    let expected = call.expected()?;
    let id = RouteId::from_bits(ids::bits()?);
    let patch = Box::new(patch(content));
    let _turn = call.turn().await;
    let command = Command::CreateRoute {
        edge: edge.clone(),
        expected,
        id: id.clone(),
        place,
        patch,
    };
    let applied = call.apply(command).await?;
    Ok(
        Answer::created(&show(&call, &applied.published, &edge, &id)?)?
            .about(edge)
            .about(id),
    )
}

pub(crate) async fn get(Path((edge, id)): Path<(String, String)>, call: Call) -> Outcome {
    call.no_parameters()?;
    let (edge, id) = route_ids(&edge, &id)?;
    Answer::ok(&show(&call, &call.state(), &edge, &id)?)
}

pub(crate) async fn update(Path((edge, id)): Path<(String, String)>, call: Call) -> Outcome {
    let (edge, id) = route_ids(&edge, &id)?;
    let written = RoutePatch::read_update(call.members()?, edge.as_str(), id.as_str())?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let place = written.place_after(&route(&call.state().state, &edge, &id)?.place)?;
    let patch = Box::new(command::RoutePatch {
        place,
        ..patch(written)
    });
    let command = Command::UpdateRoute {
        edge: edge.clone(),
        expected,
        id: id.clone(),
        patch,
    };
    let applied = call.apply(command).await?;
    Ok(Answer::ok(&show(&call, &applied.published, &edge, &id)?)?
        .about(edge)
        .about(id))
}

/// The extension: a whole route in one step (R4).
pub(crate) async fn replace(Path((edge_text, id)): Path<(String, String)>, call: Call) -> Outcome {
    let (edge_id, id) = route_ids(&edge_text, &id)?;
    let mut written = RouteReplacement::read_put(call.members()?, edge_id.as_str(), id.as_str())?;
    written.id = Some(id.clone());
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let published = call.state();
    let route = Box::new(route_spec(
        &published.state,
        Some(edge(&published.state, &edge_id)?),
        written,
    )?);
    let applied = call
        .apply(Command::ReplaceRoute {
            edge: edge_id.clone(),
            expected,
            route,
        })
        .await?;
    Ok(
        Answer::ok(&show(&call, &applied.published, &edge_id, &id)?)?
            .about(edge_id)
            .about(id),
    )
}

pub(crate) async fn delete(Path((edge, id)): Path<(String, String)>, call: Call) -> Outcome {
    call.no_parameters()?;
    let (edge, id) = route_ids(&edge, &id)?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteRoute {
        edge: edge.clone(),
        expected,
        id: id.clone(),
    })
    .await?;
    Ok(Answer::done().about(edge).about(id))
}
