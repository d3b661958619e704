//! Which files there are: PATHs as the user named them, walked in a fixed order.
//!
//! Only what an author means counts: in directories `*.yaml`, `*.yml` and `*.json`; never hidden
//! entries, editors' backups, or `..` entries, by which Kubernetes mounts a ConfigMap (the files
//! themselves are symbolic links through them, and are read). What is named on the command line
//! counts whatever its name. A file or directory that is reached twice counts once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::{Mode, OFlags};

/// Deeper directories are not entered; real trees are not that deep, loops of links are.
const DEPTH_MAX: usize = 32;

/// More files than this are not listed.
const FILES_MAX: usize = 100_000;

/// More places that cannot be looked at are not told apart.
const UNLISTED_MAX: usize = 100;

/// Why a pipe, a socket or a device is not read.
const NO_FILE: &str = "it is neither a file nor a directory";

/// A PATH that names nothing.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// No path at all.
    #[error("no path is given: name a file, a directory, or - for standard input")]
    NoPath,
    /// It is not there.
    #[error("there is no file or directory {0}")]
    NotThere(String),
    /// It cannot be looked at or read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// As the user named it.
        path: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// What the user named.
#[derive(Clone)]
pub struct Roots {
    pub(crate) roots: Vec<Root>,
}

#[derive(Clone)]
pub(crate) enum Root {
    /// A file or directory, looked at again and again.
    Path(PathBuf),
    /// Standard input, or a pipe: read once.
    Once { name: Arc<str>, bytes: Arc<[u8]> },
}

/// A file that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// As the user would name it.
    pub(crate) name: Arc<str>,
    pub(crate) path: PathBuf,
    /// Changes whenever the file may have changed.
    pub(crate) stamp: Stamp,
}

/// What tells one state of a file from another without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) length: u64,
    modified: Option<SystemTime>,
    identity: Identity,
    changed: (i64, i64),
}

/// All files at one moment, in the order that decides age: by PATH, then by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) files: Vec<Listed>,
    /// Directories and links that could not be followed: what they held is pending.
    pub(crate) unlisted: Vec<Unlisted>,
    /// Every directory that was looked into and which one it was, for the watch.
    pub(crate) directories: BTreeMap<PathBuf, Identity>,
}

/// The device and number of a file or directory.
pub(crate) type Identity = (u64, u64);

/// A directory, or an entry of one, that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unlisted {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

/// What was read once may hold secrets: only names are shown.
impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.roots.iter().map(|root| match root {
            Root::Path(path) => path.display().to_string(),
            Root::Once { name, bytes: _ } => name.to_string(),
        });
        f.debug_list().entries(names).finish()
    }
}

impl Roots {
    /// Looks at PATHs as given on the command line, and reads what can be read only once.
    ///
    /// # Errors
    /// A path that names nothing is a mistake in the command.
    pub fn open(paths: &[PathBuf], bytes_max: usize) -> Result<Self, UsageError> {
        if paths.is_empty() {
            return Err(UsageError::NoPath);
        }
        let roots = paths
            .iter()
            .map(|path| open_root(path, bytes_max))
            .collect::<Result<_, _>>()?;
        Ok(Self { roots })
    }

    /// What can change.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.roots.iter().filter_map(|root| match root {
            Root::Path(path) => Some(path),
            Root::Once { .. } => None,
        })
    }

    /// Everything that the user named, as the files of it are filed.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| match root {
            Root::Path(path) => path.as_path(),
            Root::Once { name, bytes: _ } => Path::new(name.as_ref()),
        })
    }

    /// Walks everything.
    pub(crate) fn list(&self) -> Listing {
        let mut walk = Walk::default();
        for root in &self.roots {
            match root {
                Root::Path(path) => walk.root(path),
                Root::Once { name, bytes } => {
                    let stamp = Stamp {
                        length: bytes.len() as u64,
                        ..Stamp::default()
                    };
                    let (name, path) = (Arc::clone(name), PathBuf::from(name.as_ref()));
                    walk.listing.files.push(Listed { name, path, stamp });
                }
            }
        }
        walk.listing
    }

    /// Reads a listed file.
    pub(crate) fn read(&self, file: &Listed, bytes_max: usize) -> io::Result<Vec<u8>> {
        let once = self.roots.iter().find_map(|root| match root {
            Root::Once { name, bytes } if *name == file.name => Some(bytes),
            Root::Once { .. } | Root::Path(_) => None,
        });
        match once {
            Some(bytes) => Ok(bytes.to_vec()),
            None => read_bounded(open_file(&file.path)?, bytes_max),
        }
    }
}

/// Opens what was a file when it was listed. A pipe may be in its place by now, and opening that
/// would wait for a writer, for ever perhaps: it is opened without waiting and then looked at.
fn open_file(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(NO_FILE))
    }
}

fn open_root(path: &Path, bytes_max: usize) -> Result<Root, UsageError> {
    let name: Arc<str> = path.to_string_lossy().into();
    let unreadable = |source| UsageError::Unreadable {
        path: name.to_string(),
        source,
    };
    if path == Path::new("-") {
        let bytes = read_bounded(io::stdin().lock(), bytes_max).map_err(unreadable)?;
        return Ok(Root::Once {
            name,
            bytes: bytes.into(),
        });
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(UsageError::NotThere(name.to_string()));
        }
        Err(error) => return Err(unreadable(error)),
    };
    if metadata.is_file() || metadata.is_dir() {
        return Ok(Root::Path(path.to_owned()));
    }
    // A pipe, as the shell's <(…) makes one.
    let bytes = fs::File::open(path)
        .and_then(|file| read_bounded(file, bytes_max))
        .map_err(unreadable)?;
    Ok(Root::Once {
        name,
        bytes: bytes.into(),
    })
}

/// Reads at most one byte more than the limit, so that the reader can say "too large".
fn read_bounded(reader: impl io::Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[derive(Default)]
struct Walk {
    /// As the user named it.
    root: PathBuf,
    listing: Listing,
    seen: BTreeSet<Identity>,
}

impl Walk {
    fn root(&mut self, path: &Path) {
        path.clone_into(&mut self.root);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.directory(path, &metadata, 0),
            Ok(metadata) if metadata.is_file() => self.file(path, &metadata),
            Ok(_) => self.unlisted(path, &NO_FILE),
            // What the command names is there, or nothing is known of it: a volume that is not
            // mounted and a directory that is being replaced look just like this (R19).
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.unlisted(path, &"the command names it and it is not there")
            }
            Err(error) => self.unlisted(path, &error),
        }
    }

    fn unlisted(&mut self, path: &Path, reason: &dyn ToString) {
        let unlisted = &mut self.listing.unlisted;
        // Too many for a list: then all that the user named with this path is out of reach.
        let path = if unlisted.len() < UNLISTED_MAX {
            path
        } else {
            &self.root
        };
        if unlisted.last().is_none_or(|last| last.path != path) {
            unlisted.push(Unlisted {
                path: path.to_owned(),
                reason: reason.to_string(),
            });
        }
    }

    fn file(&mut self, path: &Path, metadata: &fs::Metadata) {
        let stamp = stamp(metadata);
        if !self.seen.insert(stamp.identity) {
            return;
        }
        if self.listing.files.len() >= FILES_MAX {
            // Which files were left out depends on the others: none of them is certain.
            let root = self.root.clone();
            return self.unlisted(&root, &format!("there are more than {FILES_MAX} files"));
        }
        let name = path.to_string_lossy().into();
        self.listing.files.push(Listed {
            name,
            path: path.to_owned(),
            stamp,
        });
    }

    fn directory(&mut self, path: &Path, metadata: &fs::Metadata, depth: usize) {
        if !self.seen.insert(stamp(metadata).identity) {
            return;
        }
        if depth >= DEPTH_MAX {
            self.unlisted(
                path,
                &format!("it lies more than {DEPTH_MAX} directories deep"),
            );
            return;
        }
        self.listing
            .directories
            .insert(path.to_owned(), stamp(metadata).identity);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.unlisted(path, &error),
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            match entry {
                Ok(entry) => {
                    names.insert(entry.file_name());
                }
                // Part of a directory is like none of it: what is not seen is not gone.
                Err(error) => self.unlisted(path, &error),
            }
        }
        for name in names {
            if is_ignored(&name.to_string_lossy()) {
                continue;
            }
            self.entry(&path.join(&name), depth);
        }
    }

    fn entry(&mut self, path: &Path, depth: usize) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                // As a directory it adds nothing; as the manifest that it is named it is not read.
                if is_manifest(path) && self.seen.contains(&stamp(&metadata).identity) {
                    self.unlisted(path, &"it is a link to a directory that is read already");
                }
                self.directory(path, &metadata, depth + 1);
            }
            Ok(_) if !is_manifest(path) => {}
            Ok(metadata) if metadata.is_file() => self.file(path, &metadata),
            // Opening a pipe would wait for a writer.
            Ok(_) => self.unlisted(path, &NO_FILE),
            // A link to nothing is there: what it should lead to is not read, whatever its name,
            // for it may be a directory. Anything else went away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(path).is_ok() {
                    self.unlisted(path, &"it is a link to nothing");
                }
            }
            Err(error) => self.unlisted(path, &error),
        }
    }
}

/// Hidden entries (`..data` among them) and what editors leave behind.
fn is_ignored(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || name.ends_with(".bak")
        || name.ends_with(".swp")
        || (name.starts_with('#') && name.ends_with('#'))
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// The identity of a directory, if it is there.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path)
        .ok()
        .map(|metadata| stamp(&metadata).identity)
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    Stamp {
        length: metadata.len(),
        modified: metadata.modified().ok(),
        identity: (metadata.dev(), metadata.ino()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let roots = Roots::open(&[root.to_owned()], 1000).expect("there");
        let listing = roots.list();
        assert_eq!(listing.unlisted, []);
        let name = |file: &Listed| {
            file.path
                .strip_prefix(root)
                .expect("below")
                .display()
                .to_string()
        };
        listing.files.iter().map(name).collect()
    }

    fn write(root: &Path, name: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        fs::write(path, name).expect("written");
    }

    #[test]
    fn what_counts_in_a_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in [
            "b.yaml",
            "a.yml",
            "c.json",
            "sub/d.yaml",
            "sub/.hidden.yaml",
            ".git/e.yaml",
            "f.yaml~",
            "#g.yaml#",
            "h.yaml.bak",
            ".i.yaml.swp",
            "j.txt",
            "k",
            "README.md",
            "l.yaml.swp",
            "#m.yaml",
        ] {
            write(dir.path(), name);
        }
        assert_eq!(
            names(dir.path()),
            ["#m.yaml", "a.yml", "b.yaml", "c.json", "sub/d.yaml"]
        );
    }

    #[test]
    fn a_config_map_mount_is_read_once_through_its_links() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "..2026_01/a.yaml");
        symlink("..2026_01", dir.path().join("..data")).expect("linked");
        symlink("..data/a.yaml", dir.path().join("a.yaml")).expect("linked");
        assert_eq!(names(dir.path()), ["a.yaml"]);
    }

    #[test]
    fn links_in_circles_and_twice_named_files_count_once() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "sub/a.yaml");
        symlink("..", dir.path().join("sub/up")).expect("linked");
        symlink("sub", dir.path().join("again")).expect("linked");
        symlink("loop", dir.path().join("loop")).expect("linked");
        symlink("nothing.yaml", dir.path().join("dangling.yaml")).expect("linked");
        symlink("sub/a.yaml", dir.path().join("b.yaml")).expect("linked");
        let roots =
            Roots::open(&[dir.path().to_owned(), dir.path().join("sub")], 1000).expect("there");
        let listing = roots.list();
        assert_eq!(listing.files.len(), 1, "{:?}", listing.files);
        // What can never be looked at may hide anything.
        let unlisted: Vec<_> = listing.unlisted.iter().map(|u| &u.path).collect();
        assert_eq!(
            unlisted,
            [&dir.path().join("dangling.yaml"), &dir.path().join("loop")]
        );
    }

    #[test]
    fn what_is_named_as_a_manifest_and_is_no_file_is_not_passed_over() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "a.yaml");
        write(dir.path(), "dir.yaml/b.yaml");
        symlink("..", dir.path().join("dir.yaml/up.yaml")).expect("linked");
        let _socket = UnixListener::bind(dir.path().join("socket.yaml")).expect("bound");
        let _other = UnixListener::bind(dir.path().join("socket")).expect("bound");
        let listing = Roots::open(&[dir.path().to_owned()], 1000)
            .expect("there")
            .list();
        assert_eq!(listing.files.len(), 2, "{:?}", listing.files);
        let unlisted: Vec<_> = listing.unlisted.iter().map(|u| &u.path).collect();
        let expected = [
            dir.path().join("dir.yaml/up.yaml"),
            dir.path().join("socket.yaml"),
        ];
        assert_eq!(unlisted, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_becomes_a_pipe_after_it_was_listed_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), "a.yaml");
        let roots = Roots::open(&[dir.path().to_owned()], 1000).expect("there");
        let listing = roots.list();
        let path = dir.path().join("a.yaml");
        fs::remove_file(&path).expect("removed");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).expect("made");
        // Without a writer, opening it the usual way would never return.
        let error = roots.read(&listing.files[0], 1000).expect_err("no file");
        assert_eq!(error.to_string(), NO_FILE);
    }

    #[test]
    fn a_named_file_counts_whatever_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), ".hidden.txt");
        let path = dir.path().join(".hidden.txt");
        let listing = Roots::open(std::slice::from_ref(&path), 1000)
            .expect("there")
            .list();
        assert_eq!(listing.files.len(), 1);
        let missing = Roots::open(&[path, dir.path().join("none")], 1000).expect_err("not there");
        assert!(matches!(missing, UsageError::NotThere(_)), "{missing}");
        assert!(matches!(Roots::open(&[], 1000), Err(UsageError::NoPath)));
    }
}
