//! API keys: how tokens look, and the two that the first start makes.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use anyhow::Context as _;
use controller::{ports::Clock as _, reconcile::SystemClock};
use edge_api::api_key;
use edge_state::{
    command::{Command, Texts},
    state::Role,
};
use edge_store::{Store, Writer};
use model::{
    id::{KeyId, ksuid},
    secret::{Digest, Secret},
};
use sha2::{Digest as _, Sha256};
use translation::digest::DigestKey;

use crate::paths;

/// A new key's id and the key itself, in the form that the edge API fixes.
fn new_token() -> anyhow::Result<(KeyId, Secret)> {
    let mut id = [0; 20];
    let mut secret = [0; 15];
    getrandom::fill(&mut id).context("no randomness")?;
    getrandom::fill(&mut secret).context("no randomness")?;
    Ok(api_key::new_key(ksuid(SystemClock.now(), id), secret))
}

/// The digest under which the edge knows a token.
pub(crate) fn token_digest(token: &Secret) -> Digest {
    api_key::digest(token.expose())
}

/// The key of the digests (R9): derived from the controller's token, so that replicas share it
/// and whoever only reads the edge cannot make one.
pub(crate) fn digest_key(controller_token: &Secret) -> DigestKey {
    let mut hash = Sha256::new();
    hash.update(b"portcullis digest key\0");
    hash.update(controller_token.expose());
    DigestKey::new(hash.finalize().to_vec())
}

/// Makes sure that `DATA_DIR/api-key` and `DATA_DIR/controller-key` are there and valid.
pub(crate) async fn ensure(store: &Store, data_dir: &Path) -> anyhow::Result<()> {
    let wanted = [
        (
            paths::api_key(data_dir),
            Role::Write,
            "made at the first start, for portcullis get and status",
        ),
        (
            paths::controller_key(data_dir),
            Role::Controller,
            "made at the first start, for portcullis controller",
        ),
    ];
    for (path, role, description) in wanted {
        let known = path.exists()
            && paths::read_key(&path).ok().is_some_and(|token| {
                store
                    .current()
                    .find_key(&token_digest(&token))
                    .is_some_and(|(_, found)| found == role)
            });
        if known {
            keep_private(&path)?;
            continue;
        }
        let (id, token) = new_token()?;
        write_private(&path, token.expose())?;
        let command = Command::CreateKey {
            id,
            role,
            token_digest: token_digest(&token),
            texts: Texts {
                description: Some(description.to_owned()),
                metadata: None,
            },
        };
        store
            .apply(command, &Writer::EDGE)
            .await
            .context("the first API keys cannot be made")?;
    }
    Ok(())
}

/// Shuts a key file to others, who may have read it meanwhile.
fn keep_private(path: &Path) -> anyhow::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("{} cannot be shut to others", path.display()))?;
    tracing::warn!(
        file = %path.display(),
        "others could read this API key; it is private again. If somebody did, delete it with \
         portcullis api-keys delete and start again"
    );
    Ok(())
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let draft = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let _stale = fs::remove_file(&draft);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}
