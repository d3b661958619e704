//! The data directory: who may use it, and the files in it.
//!
//! One process writes a directory. The lock is the operating system's, so that a killed process
//! leaves none behind; the file that is locked holds the process id, for the message.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use redb::backends::FileBackend;

use crate::{disk::Disk, journal};

const LOCK: &str = "lock";
const DEMO: &str = "demo";
const STATE: &str = "state.redb";
const DRAFT: &str = "state.redb.new";
const CLOSINGS: &str = "closings";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another process uses it.
    #[error("the data directory {} is in use{}: stop that process, or choose another --data-dir", path.display(), pid.map_or_else(String::new, |pid| format!(" by process {pid}")))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, if it could be told.
        pid: Option<u32>,
    },
    /// It was made with `--demo`.
    #[error("the data directory {} was made by --demo: choose another --data-dir, or start with --demo", .0.display())]
    IsDemo(PathBuf),
    /// It was made without `--demo`.
    #[error("the data directory {} was made without --demo: choose another --data-dir for trying things out", .0.display())]
    IsNotDemo(PathBuf),
    /// Others may read the secrets in it.
    #[error("others may read the data directory {}: run chmod 700 on it, or choose another --data-dir", .0.display())]
    Readable(PathBuf),
    /// The system refused something.
    #[error("{} in the data directory cannot be used", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A locked data directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Held for as long as the directory is used.
    _lock: File,
    closings: File,
}

impl Directory {
    pub(crate) fn open(path: &Path, demo: bool) -> Result<Self, DirectoryError> {
        make_private(path)?;
        let lock = lock(path)?;
        check_demo(path, demo)?;
        let closings = closings(path)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            closings,
        })
    }
}

/// Turns an I/O error about a file into one that names it.
fn about(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { path, source }
}

/// Makes the directory, readable by its owner only: there are secrets in it.
fn make_private(path: &Path) -> Result<(), DirectoryError> {
    if !path.exists() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(about(path))?;
    }
    let mode = fs::metadata(path).map_err(about(path))?.mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let is_empty = fs::read_dir(path).map_err(about(path))?.next().is_none();
    if !is_empty {
        return Err(DirectoryError::Readable(path.to_owned()));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(about(path))
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn lock(directory: &Path) -> Result<File, DirectoryError> {
    let path = directory.join(LOCK);
    let mut file = private_file(&path).map_err(about(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file
                .read_to_string(&mut text)
                .ok()
                .and_then(|_| text.trim().parse().ok());
            return Err(DirectoryError::InUse {
                path: directory.to_owned(),
                pid,
            });
        }
        Err(TryLockError::Error(error)) => return Err(about(&path)(error)),
    }
    // The lock holds without the number: on a full disk it is left out.
    let written = file
        .set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = written {
        tracing::debug!(%error, "the process id could not be written into the lock file");
    }
    Ok(file)
}

/// A directory is for trying things out, or for real use, from its first start on.
fn check_demo(directory: &Path, demo: bool) -> Result<(), DirectoryError> {
    let marker = directory.join(DEMO);
    let is_new = !directory.join(STATE).exists();
    match (marker.exists(), demo) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(DirectoryError::IsDemo(directory.to_owned())),
        (false, true) if is_new => private_file(&marker).map(drop).map_err(about(&marker)),
        (false, true) => Err(DirectoryError::IsNotDemo(directory.to_owned())),
    }
}

/// The journal's file, whole from its first moment: it is written elsewhere and renamed.
fn closings(directory: &Path) -> Result<File, DirectoryError> {
    let path = directory.join(CLOSINGS);
    if !path.exists() {
        let new = directory.join("closings.new");
        let write = || {
            let mut file = private_file(&new)?;
            file.set_len(0)?;
            file.write_all(&journal::empty())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(directory)?.sync_all()
        };
        write().map_err(about(&path))?;
    }
    private_file(&path).map_err(about(&path))
}

fn backend(file: File) -> io::Result<FileBackend> {
    FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))
}

impl Disk for Directory {
    type Backend = FileBackend;

    fn has_database(&self) -> io::Result<bool> {
        self.path.join(STATE).try_exists()
    }

    fn draft(&mut self) -> io::Result<FileBackend> {
        let file = private_file(&self.path.join(DRAFT))?;
        file.set_len(0)?;
        backend(file)
    }

    fn adopt_draft(&mut self) -> io::Result<()> {
        let draft = self.path.join(DRAFT);
        File::open(&draft)?.sync_all()?;
        fs::rename(draft, self.path.join(STATE))?;
        File::open(&self.path)?.sync_all()
    }

    fn database(&mut self) -> io::Result<FileBackend> {
        backend(
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(self.path.join(STATE))?,
        )
    }

    fn read_journal(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.closings.seek(SeekFrom::Start(0))?;
        let most = journal::empty().len() as u64;
        (&mut self.closings).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write_journal(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.closings.seek(SeekFrom::Start(offset as u64))?;
        self.closings.write_all(bytes)?;
        self.closings.sync_data()
    }
}
