//! The API key: given, or in a file that may be replaced while the process runs.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::secret::Secret;

/// Bytes of a key file; a key has 49.
const FILE_BYTES_MAX: u64 = 4096;
/// How often a key file is looked at while its key is refused.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where the key comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The key itself.
    Text(Secret),
    /// A file that holds nothing but the key.
    File(PathBuf),
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("the API key file {} cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it, or too much.
    #[error("the API key file {} does not hold an API key", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
}

/// The key in use, read again once it has been refused.
#[derive(Debug)]
pub(crate) struct Key {
    source: KeySource,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Secret>,
    trouble: Option<Trouble>,
}

/// Why the file is read again before every call.
#[derive(Debug)]
enum Trouble {
    /// The edge refused this key last.
    Refused(Secret),
    /// There was no key to be had.
    Missing,
}

impl Key {
    pub(crate) fn new(source: KeySource) -> Self {
        Self {
            source,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key for the next call.
    pub(crate) fn get(&self) -> Result<Secret, KeyError> {
        let mut state = self.state();
        if let (Some(key), None) = (&state.current, &state.trouble) {
            return Ok(key.clone());
        }
        let key = match &self.source {
            KeySource::Text(key) => Ok(key.clone()),
            KeySource::File(path) => read(path),
        };
        match (&key, &state.trouble) {
            (Err(_), _) => state.trouble = Some(Trouble::Missing),
            (Ok(key), Some(Trouble::Refused(refused))) if key == refused => {}
            // Another key than the refused one: nobody need be woken for it again.
            (Ok(key), _) => {
                state.current = Some(key.clone());
                state.trouble = None;
            }
        }
        key
    }

    /// The edge answered a call with this key: it is good.
    pub(crate) fn accepted(&self) {
        self.state().trouble = None;
    }

    /// The edge refused this key.
    pub(crate) fn refused(&self, key: Secret) {
        self.state().trouble = Some(Trouble::Refused(key));
    }

    /// Returns when the file holds another key than the one that was refused last (R7). Never,
    /// while none is refused: whoever waits for this waits for nothing else to do.
    pub(crate) async fn changed(&self) {
        let KeySource::File(path) = &self.source else {
            return std::future::pending().await;
        };
        while !self.is_mended_by(path) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn is_mended_by(&self, path: &Path) -> bool {
        match &self.state().trouble {
            None => false,
            Some(Trouble::Missing) => read(path).is_ok(),
            Some(Trouble::Refused(refused)) => read(path).is_ok_and(|key| key != *refused),
        }
    }
}

fn read(path: &Path) -> Result<Secret, KeyError> {
    use io::Read as _;
    let failed = |source| KeyError::File {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    let mut file = file.take(FILE_BYTES_MAX + 1);
    file.read_to_string(&mut text).map_err(failed)?;
    let key = text.trim();
    if key.is_empty() || text.len() as u64 > FILE_BYTES_MAX {
        return Err(KeyError::NoKey {
            path: path.to_owned(),
        });
    }
    Ok(Secret::new(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_is_read_again_and_a_changed_file_wakes() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("api-key");
        std::fs::write(&path, "one\n").expect("written");
        let key = Key::new(KeySource::File(path.clone()));
        assert_eq!(key.get().expect("a key").expose(), "one");
        std::fs::write(&path, "two\n").expect("written");
        assert_eq!(
            key.get().expect("a key").expose(),
            "one",
            "a good key is kept"
        );
        let nothing_to_do = tokio::time::timeout(Duration::from_secs(60), key.changed());
        assert!(nothing_to_do.await.is_err(), "no key is refused");
        key.refused(Secret::new("one".into()));
        key.changed().await;
        assert_eq!(key.get().expect("a key").expose(), "two");
        let woken_once = tokio::time::timeout(Duration::from_secs(60), key.changed());
        assert!(woken_once.await.is_err(), "the new key is in use");
        key.refused(Secret::new("two".into()));
        let waiting = tokio::time::timeout(Duration::from_secs(60), key.changed());
        assert!(
            waiting.await.is_err(),
            "the file holds the refused key still"
        );
        std::fs::write(&path, " \n").expect("written");
        assert!(matches!(key.get(), Err(KeyError::NoKey { .. })));
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(key.get(), Err(KeyError::File { .. })));
        let waiting = tokio::time::timeout(Duration::from_secs(60), key.changed());
        assert!(waiting.await.is_err(), "there is no file");
        std::fs::write(&path, "three").expect("written");
        key.changed().await;
        assert_eq!(key.get().expect("a key").expose(), "three");
        key.accepted();
        let nothing_to_do = tokio::time::timeout(Duration::from_secs(60), key.changed());
        assert!(nothing_to_do.await.is_err(), "no key is refused");
    }
}
