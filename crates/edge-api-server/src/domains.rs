//! `/reserved_domains`

use axum::extract::Path;
use edge_api::{
    domain::{self, ReservedDomain},
    error::ApiError,
    extension::read_namespace,
};
use edge_state::{
    command::{Command, Texts},
    state::{Domain, EdgeState},
};
use edge_store::Published;
use model::id::DomainId;

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    edges::texts,
    ids, page, views,
};

fn domain<'a>(state: &'a EdgeState, id: &DomainId) -> Result<&'a Domain, Failure> {
    state
        .domains
        .get(id)
        .map(AsRef::as_ref)
        .ok_or_else(|| ApiError::not_found().into())
}

fn show(call: &Call, published: &Published, id: &DomainId) -> Result<ReservedDomain, Failure> {
    Ok(views::domain(&call.base, id, domain(&published.state, id)?))
}

pub(crate) async fn list(call: Call) -> Outcome {
    let published = call.state();
    page::answer(
        &call,
        DomainId::parse,
        published.state.domains.iter(),
        |id, domain| Some(views::domain(&call.base, id, domain)),
    )
}

pub(crate) async fn create(call: Call) -> Outcome {
    let (host, written) = domain::read_create(call.members()?)?;
    let id = DomainId::from_bits(ids::bits()?);
    let command = Command::PutDomain {
        id: id.clone(),
        controller: None,
        host,
        namespace: None,
        heir: None,
        declared: true,
        texts: texts(written),
    };
    let _turn = call.turn().await;
    let applied = call.apply(command).await?;
    Ok(Answer::created(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn get(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, DomainId::parse)?;
    Answer::ok(&show(&call, &call.state(), &id)?)
}

/// Writes a domain again with another text or owner; everything else stays.
async fn change(
    call: Call,
    id: DomainId,
    change: impl FnOnce(&Domain) -> Result<(Option<String>, Texts), Failure>,
) -> Outcome {
    let _turn = call.turn().await;
    let published = call.state();
    let old = domain(&published.state, &id)?;
    let (namespace, texts) = change(old)?;
    // Whom the last owner named is nothing to the next.
    let heir = old.heir.clone().filter(|_| namespace == old.namespace);
    let command = Command::PutDomain {
        id: id.clone(),
        controller: old.controller.clone(),
        host: old.host.clone(),
        namespace,
        heir,
        declared: old.undeclared_since.is_none(),
        texts,
    };
    let applied = call.apply(command).await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn update(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, DomainId::parse)?;
    let members = call.members()?;
    let text = id.to_string();
    change(call, id, |old| {
        let written = domain::read_update(members, &text, &old.host)?;
        Ok((old.namespace.clone(), texts(written)))
    })
    .await
}

/// The extension: an operator gives the host to a namespace (R20).
pub(crate) async fn assign(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, DomainId::parse)?;
    let namespace = read_namespace(call.members()?)?;
    change(call, id, |_old| Ok((Some(namespace), Texts::default()))).await
}

/// The extension: an operator takes the host from its namespace; the next that declares it has it.
pub(crate) async fn release(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, DomainId::parse)?;
    change(call, id.clone(), |_old| Ok((None, Texts::default()))).await?;
    Ok(Answer::done().about(id))
}

pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, DomainId::parse)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteDomain { id: id.clone() }).await?;
    Ok(Answer::done().about(id))
}
