//! `/api_keys`

use edge_api::api_key::{ApiKey, KeyCreate, digest, new_key, read_update};
use edge_state::{command::Command, state::Role};
use model::id::KeyId;

use crate::{
    answer::{Answer, Outcome, internal},
    call::Call,
    collection::Collection,
    edges::texts,
    ids, views,
};

pub(crate) static KEYS: Collection<KeyId, ApiKey> = Collection {
    parse: KeyId::parse,
    ids: |state| Box::new(state.keys.keys()),
    find: |base, state, id| Some(views::api_key(base, id, state.keys.get(id)?)),
    update: |id, members| {
        let texts = texts(read_update(members, id.as_str())?);
        Ok(Command::UpdateKey { id, texts })
    },
    delete: |id| Command::DeleteKey { id },
};

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
    let command = Command::CreateKey {
        id: id.clone(),
        role,
        token_digest: digest(key.expose()),
        texts: texts(written),
    };
    let mut shown = KEYS.write(&call, &id, command).await?;
    shown.token = Some(key.expose().to_owned());
    Ok(Answer::created(&shown)?.about(id))
}
