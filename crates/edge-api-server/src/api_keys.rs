//! `/api_keys`

use axum::extract::Path;
use edge_api::{
    api_key::{ApiKey, KeyCreate, digest, new_key, read_update},
    error::ApiError,
};
use edge_state::{command::Command, state::Role};
use edge_store::Published;
use model::id::KeyId;

use crate::{
    answer::{Answer, Failure, Outcome, internal},
    call::Call,
    edges::texts,
    ids, page, views,
};

fn show(call: &Call, published: &Published, id: &KeyId) -> Result<ApiKey, Failure> {
    match published.state.keys.get(id) {
        Some(key) => Ok(views::api_key(&call.base, id, key)),
        None => Err(ApiError::not_found().into()),
    }
}

pub(crate) async fn list(call: Call) -> Outcome {
    let published = call.state();
    page::answer(
        &call,
        KeyId::parse,
        published.state.keys.iter(),
        |id, key| Some(views::api_key(&call.base, id, key)),
    )
}

/// Makes a key and shows it, this one time.
pub(crate) async fn create(call: Call) -> Outcome {
    let KeyCreate {
        role,
        texts: written,
    } = KeyCreate::read(call.members()?)?;
    let role = match role.as_str() {
        "controller" => Role::Controller,
        "read" => Role::Read,
        _ => Role::Write,
    };
    let mut secret = [0; 15];
    getrandom::fill(&mut secret).map_err(|error| internal(&error))?;
    let (id, key) = new_key(ids::bits()?, secret);
    let token_digest = digest(key.expose());
    let command = Command::CreateKey {
        id: id.clone(),
        role,
        token_digest,
        texts: texts(written),
    };
    let _turn = call.turn().await;
    let applied = call.apply(command).await?;
    let mut answer = show(&call, &applied.published, &id)?;
    answer.token = Some(key.expose().to_owned());
    Ok(Answer::created(&answer)?.about(id))
}

pub(crate) async fn get(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, KeyId::parse)?;
    Answer::ok(&show(&call, &call.state(), &id)?)
}

pub(crate) async fn update(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, KeyId::parse)?;
    let texts = texts(read_update(call.members()?, id.as_str())?);
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::UpdateKey {
            id: id.clone(),
            texts,
        })
        .await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, KeyId::parse)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteKey { id: id.clone() }).await?;
    Ok(Answer::done().about(id))
}
