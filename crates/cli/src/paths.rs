//! Where the process keeps what it must remember, and where commands find keys.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use model::secret::Secret;

/// The data directory: as given, or the user's (XDG Base Directory Specification).
pub(crate) fn data_dir(given: Option<&Path>, demo: bool) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let name = if demo {
        "portcullis-demo"
    } else {
        "portcullis"
    };
    if let Some(base) = std::env::var_os("XDG_DATA_HOME").filter(|base| !base.is_empty()) {
        return Ok(PathBuf::from(base).join(name));
    }
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(".local/share").join(name)),
        None => bail!("there is no home directory; name a place with --data-dir DIR"),
    }
}

/// The file with a key for reading and writing.
pub(crate) fn api_key(data_dir: &Path) -> PathBuf {
    data_dir.join("api-key")
}

/// The file with the controller's key.
pub(crate) fn controller_key(data_dir: &Path) -> PathBuf {
    data_dir.join("controller-key")
}

/// Reads a key file: the first line, trimmed.
pub(crate) fn read_key(path: &Path) -> anyhow::Result<Secret> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the key file {} cannot be read", path.display()))?;
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        bail!(
            "the key file {} is empty: it must hold one API key",
            path.display()
        );
    }
    Ok(Secret::new(key.to_owned()))
}
