//! Modules, each under a path of its own.

use axum::extract::Path;
use edge_api::{
    error::ApiError,
    module::{
        HeadersAnswer, ModuleName, not_enforced, read_backend, read_headers, read_ip_restriction,
        read_tls_termination,
    },
};
use edge_state::command::{Command, EdgePatch, RoutePatch};
use edge_store::Published;
use model::{
    id::{EdgeId, RouteId},
    module::{ModuleKind, Modules},
};

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    edges::{self, edge_id},
    routes::{self, route, route_ids},
    views,
};

fn of_edge(call: &Call, text: &str) -> Result<ModuleName, Failure> {
    ModuleName::of_edge(text).ok_or_else(|| no_such_path(call))
}

fn of_route(call: &Call, text: &str) -> Result<ModuleName, Failure> {
    ModuleName::of_route(text).ok_or_else(|| no_such_path(call))
}

fn no_such_path(call: &Call) -> Failure {
    ApiError::no_such_call(&call.path).into()
}

/// A module that is not there is "not found", whether this edge could enforce it or not.
fn found(module: Option<serde_json::Result<serde_json::Value>>) -> Outcome {
    match module {
        None => Err(ApiError::not_found().into()),
        Some(value) => Answer::ok(&value.map_err(|error| crate::answer::internal(&error))?),
    }
}

fn show_of_edge(published: &Published, id: &EdgeId, name: ModuleName) -> Outcome {
    let edge = edges::edge(&published.state, id)?;
    match name {
        ModuleName::Kind(ModuleKind::TlsTermination) => found(
            edge.tls_termination
                .map(views::tls_termination)
                .map(serde_json::to_value),
        ),
        ModuleName::Kind(_) | ModuleName::Backend | ModuleName::OldPolicy => found(None),
    }
}

fn show_of_route(
    call: &Call,
    published: &Published,
    edge: &EdgeId,
    id: &RouteId,
    name: ModuleName,
) -> Outcome {
    let route = route(&published.state, edge, id)?;
    let modules = &route.modules;
    let headers = |module: &Option<_>| {
        module
            .clone()
            .map(HeadersAnswer::from)
            .map(serde_json::to_value)
    };
    found(match name {
        ModuleName::Backend => {
            let module = route
                .backend
                .as_ref()
                .map(|module| views::backend_module(&call.base, module));
            module.map(serde_json::to_value)
        }
        ModuleName::Kind(ModuleKind::IpRestriction) => {
            let module = modules.ip_restriction.as_ref();
            module
                .map(|module| views::ip_restriction(&call.base, module))
                .map(serde_json::to_value)
        }
        ModuleName::Kind(ModuleKind::RequestHeaders) => headers(&modules.request_headers),
        ModuleName::Kind(ModuleKind::ResponseHeaders) => headers(&modules.response_headers),
        ModuleName::Kind(_) | ModuleName::OldPolicy => None,
    })
}

pub(crate) async fn get_of_edge(Path((id, module)): Path<(String, String)>, call: Call) -> Outcome {
    call.no_parameters()?;
    let name = of_edge(&call, &module)?;
    show_of_edge(&call.state(), &edge_id(&id)?, name)
}

pub(crate) async fn put_of_edge(Path((id, module)): Path<(String, String)>, call: Call) -> Outcome {
    let name = of_edge(&call, &module)?;
    let id = edge_id(&id)?;
    let ModuleName::Kind(ModuleKind::TlsTermination) = name else {
        return Err(not_enforced(name).into());
    };
    let module = read_tls_termination(call.members()?)?;
    let patch = EdgePatch {
        tls_termination: Some(edges::tls_termination(module)),
        ..EdgePatch::default()
    };
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::UpdateEdge {
            id: id.clone(),
            expected,
            patch,
        })
        .await?;
    Ok(show_of_edge(&applied.published, &id, name)?.about(id))
}

pub(crate) async fn delete_of_edge(
    Path((id, module)): Path<(String, String)>,
    call: Call,
) -> Outcome {
    call.no_parameters()?;
    let name = of_edge(&call, &module)?;
    let id = edge_id(&id)?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    edges::edge(&call.state().state, &id)?;
    if let ModuleName::Kind(kind) = name
        && name.is_readable()
    {
        call.apply(Command::DeleteEdgeModule {
            id: id.clone(),
            expected,
            kind,
        })
        .await?;
    }
    Ok(Answer::done().about(id))
}

pub(crate) async fn get_of_route(
    Path((edge, id, module)): Path<(String, String, String)>,
    call: Call,
) -> Outcome {
    call.no_parameters()?;
    let name = of_route(&call, &module)?;
    let (edge, id) = route_ids(&edge, &id)?;
    show_of_route(&call, &call.state(), &edge, &id, name)
}

pub(crate) async fn put_of_route(
    Path((edge, id, module)): Path<(String, String, String)>,
    call: Call,
) -> Outcome {
    let name = of_route(&call, &module)?;
    let (edge, id) = route_ids(&edge, &id)?;
    if !name.is_readable() {
        return Err(not_enforced(name).into());
    }
    let members = call.members()?;
    let mut patch = RoutePatch::default();
    match name {
        ModuleName::Backend => patch.backend = Some(routes::backend(read_backend(members)?)),
        ModuleName::Kind(ModuleKind::IpRestriction) => {
            let ip_restriction = Some(read_ip_restriction(members)?);
            patch.modules = Modules {
                ip_restriction,
                ..Modules::default()
            };
        }
        ModuleName::Kind(ModuleKind::RequestHeaders) => {
            let request_headers = Some(read_headers(members)?);
            patch.modules = Modules {
                request_headers,
                ..Modules::default()
            };
        }
        ModuleName::Kind(ModuleKind::ResponseHeaders) => {
            let response_headers = Some(read_headers(members)?);
            patch.modules = Modules {
                response_headers,
                ..Modules::default()
            };
        }
        ModuleName::Kind(_) | ModuleName::OldPolicy => return Err(not_enforced(name).into()),
    }
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let patch = Box::new(patch);
    let command = Command::UpdateRoute {
        edge: edge.clone(),
        expected,
        id: id.clone(),
        patch,
    };
    let applied = call.apply(command).await?;
    Ok(show_of_route(&call, &applied.published, &edge, &id, name)?
        .about(edge)
        .about(id))
}

/// Deletes a module; one that is not there is deleted already, because controllers that use this
/// API delete twice.
pub(crate) async fn delete_of_route(
    Path((edge, id, module)): Path<(String, String, String)>,
    call: Call,
) -> Outcome {
    call.no_parameters()?;
    let name = of_route(&call, &module)?;
    let (edge, id) = route_ids(&edge, &id)?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    route(&call.state().state, &edge, &id)?;
    let (edge_id, route_id) = (edge.clone(), id.clone());
    match name {
        ModuleName::Backend => {
            call.apply(Command::DeleteRouteBackend {
                edge: edge_id,
                expected,
                id: route_id,
            })
            .await?;
        }
        ModuleName::Kind(kind) if name.is_readable() => {
            call.apply(Command::DeleteRouteModule {
                edge: edge_id,
                expected,
                id: route_id,
                kind,
            })
            .await?;
        }
        ModuleName::Kind(_) | ModuleName::OldPolicy => {}
    }
    Ok(Answer::done().about(edge).about(id))
}
