//! `/edges/https`

use axum::extract::Path;
use edge_api::{
    edge::{EdgePatch, EdgeReplacement},
    error::{ApiError, Code},
};
use edge_state::{
    command::{self, Command, EdgeSpec, Texts},
    state::{Edge, EdgeState, TlsTermination},
};
use edge_store::Published;
use model::{id::EdgeId, module::EdgeDemands};

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    ids, page,
    routes::route_spec,
    views,
};

/// Reads an edge's id from the path.
pub(crate) fn edge_id(text: &str) -> Result<EdgeId, Failure> {
    EdgeId::parse(text)
        .map_err(|error| ApiError::new(Code::EdgeIdInvalid, error.to_string()).into())
}

/// The edge with this id.
pub(crate) fn edge<'a>(state: &'a EdgeState, id: &EdgeId) -> Result<&'a Edge, Failure> {
    state
        .edges
        .get(id)
        .map(AsRef::as_ref)
        .ok_or_else(|| ApiError::not_found().into())
}

/// Texts as commands take them.
pub(crate) fn texts(texts: edge_api::texts::Texts) -> Texts {
    let edge_api::texts::Texts {
        description,
        metadata,
    } = texts;
    Texts {
        description,
        metadata,
    }
}

pub(crate) fn tls_termination(module: edge_api::module::TlsTermination) -> TlsTermination {
    let edge_api::module::TlsTermination { enabled, minimum } = module;
    TlsTermination { enabled, minimum }
}

fn patch(patch: EdgePatch) -> command::EdgePatch {
    let EdgePatch {
        texts: written,
        hosts,
        tls_termination: module,
    } = patch;
    command::EdgePatch {
        texts: texts(written),
        hosts,
        tls_termination: module.map(tls_termination),
        mutual_tls: None,
    }
}

fn show(
    call: &Call,
    published: &Published,
    id: &EdgeId,
) -> Result<edge_api::edge::HttpsEdge, Failure> {
    Ok(views::edge(&call.base, id, edge(&published.state, id)?))
}

pub(crate) async fn list(call: Call) -> Outcome {
    let published = call.state();
    page::answer(
        &call,
        EdgeId::parse,
        published.state.edges.iter(),
        |id, edge| Some(views::edge(&call.base, id, edge)),
    )
}

pub(crate) async fn create(call: Call) -> Outcome {
    let patch = patch(EdgePatch::read_create(call.members()?)?);
    let id = EdgeId::from_bits(ids::bits()?);
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::CreateEdge {
            id: id.clone(),
            controller: None,
            patch,
        })
        .await?;
    Ok(Answer::created(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn get(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    Answer::ok(&show(&call, &call.state(), &edge_id(&id)?)?)
}

pub(crate) async fn update(Path(id): Path<String>, call: Call) -> Outcome {
    let id = edge_id(&id)?;
    let patch = patch(EdgePatch::read_update(call.members()?, id.as_str())?);
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::UpdateEdge {
            id: id.clone(),
            expected,
            patch,
        })
        .await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

/// The extension: a whole edge in one step (R4).
pub(crate) async fn replace(Path(id): Path<String>, call: Call) -> Outcome {
    let id = edge_id(&id)?;
    let written = EdgeReplacement::read(call.members()?, id.as_str())?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    let published = call.state();
    let old = published.state.edges.get(&id).map(AsRef::as_ref);
    let EdgeReplacement {
        texts,
        hosts,
        tls_termination,
        certificate,
        routes,
    } = written;
    let routes = routes
        .into_iter()
        .map(|route| route_spec(&published.state, old, route))
        .collect::<Result<_, Failure>>()?;
    let spec = EdgeSpec {
        id: id.clone(),
        expected,
        controller: None,
        hosts,
        demands: EdgeDemands {
            tls_minimum: tls_termination
                .filter(|module| module.enabled)
                .and_then(|m| m.minimum),
            mutual_tls: None,
        },
        certificate,
        description: texts.description.unwrap_or_default(),
        metadata: texts.metadata.unwrap_or_default(),
        routes,
    };
    let applied = call.apply(Command::ReplaceEdge(Box::new(spec))).await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = edge_id(&id)?;
    let expected = call.expected()?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteEdge {
        id: id.clone(),
        expected,
    })
    .await?;
    Ok(Answer::done().about(id))
}
