//! What is known of all files, and the snapshot that follows from it.
//!
//! The tree remembers what each file held when it could last be read. A file that is broken, half
//! written, out of reach or just gone says nothing new: what it held is pending, not missing
//! (R19). Only a file that has been gone for the whole of [`Tree::gone_grace`] takes its objects
//! with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use resources::{
    kinds::Kind,
    position::{LineColumn, Place},
    problem::{FieldPath, Problem, ProblemCode},
    snapshot::{ObjectKey, Snapshot, UnreadableFile},
};
use sha2::{Digest as _, Sha256};

use crate::{
    document::{self, Contents, Part},
    files::{Identity, Listed, Listing, Roots, Stamp, Unlisted},
    scan::Scan,
    yaml::Limits,
};

/// All files together may have this many bytes; what lies beyond is not read.
const TREE_BYTES_MAX: u64 = 512 << 20;

/// What a snapshot is made of, in short.
pub(crate) type Fingerprint = (Vec<(u64, [u8; 32], bool, bool)>, Vec<Unlisted>);

type Names = BTreeSet<(Kind, ObjectKey)>;

/// All files.
pub(crate) struct Tree {
    roots: Roots,
    limits: Limits,
    gone_grace: Duration,
    files: BTreeMap<PathBuf, File>,
    /// Directories that have been listed whole: what they held is known.
    listed_once: BTreeSet<PathBuf>,
    /// Which directory a named one was when there were files in it.
    filled: BTreeMap<PathBuf, Identity>,
    unlisted: Vec<Unlisted>,
    /// The order of first sight, which is the order of age.
    next_number: u64,
}

struct File {
    name: Arc<str>,
    number: u64,
    /// `None` makes the next update read it again.
    stamp: Option<Stamp>,
    digest: [u8; 32],
    contents: Contents,
    /// What it held when it could last be read whole; `None` if it never could.
    held: Option<Names>,
    /// When it was first missed.
    gone_since: Option<Instant>,
    /// Whether it lies in a directory that cannot be listed now.
    out_of_reach: bool,
}

impl Tree {
    pub(crate) const fn new(roots: Roots, limits: Limits, gone_grace: Duration) -> Self {
        Self {
            roots,
            limits,
            gone_grace,
            files: BTreeMap::new(),
            listed_once: BTreeSet::new(),
            filled: BTreeMap::new(),
            unlisted: Vec::new(),
            next_number: 0,
        }
    }

    pub(crate) const fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Takes a listing in and reads what has changed. Says whether a file that was read now may
    /// be cut: its last line has no end.
    pub(crate) fn update(&mut self, listing: &Listing, now: Instant) -> bool {
        let mut ends_open = false;
        let mut listed = BTreeSet::new();
        let mut bytes = 0_u64;
        for file in &listing.files {
            bytes = bytes.saturating_add(file.stamp.length);
            if self.read(file, bytes, &mut ends_open) {
                listed.insert(file.path.as_path());
            }
        }
        let mut unlisted = self.replaced_roots(listing);
        unlisted.extend(listing.unlisted.iter().cloned());
        self.unlisted.clone_from(&unlisted);
        for (path, file) in &mut self.files {
            file.out_of_reach = unlisted
                .iter()
                .any(|unlisted| path.starts_with(&unlisted.path));
            // The file counted, and what stands under its name does not say that it is deleted.
            if !file.out_of_reach && listing.directories.contains_key(path) {
                file.out_of_reach = true;
                self.unlisted.push(Unlisted {
                    path: path.clone(),
                    reason: "it was a file and is a directory".to_owned(),
                });
            }
            let is_gone = !file.out_of_reach && !listed.contains(path.as_path());
            file.gone_since = is_gone.then(|| file.gone_since.unwrap_or(now));
        }
        let whole = listing
            .directories
            .keys()
            .filter(|path| !self.unlisted.iter().any(|unlisted| unlisted.path == **path));
        self.listed_once.extend(whole.cloned());
        self.forget_gone(now);
        ends_open
    }

    /// Named directories in whose place there is another one without any manifest, as where a
    /// volume is not mounted: nobody has deleted what they held (R19).
    fn replaced_roots(&mut self, listing: &Listing) -> Vec<Unlisted> {
        let mut replaced = Vec::new();
        for root in self.roots.paths() {
            let Some(identity) = listing.directories.get(root) else {
                continue;
            };
            if listing.files.iter().any(|file| file.path.starts_with(root)) {
                self.filled.insert(root.clone(), *identity);
            } else if self.filled.get(root).is_some_and(|was| was != identity) {
                replaced.push(Unlisted {
                    path: root.clone(),
                    reason: "another directory, without manifests, is in its place".to_owned(),
                });
            }
        }
        replaced
    }

    /// Drops the files that have been gone for long enough.
    fn forget_gone(&mut self, now: Instant) {
        let grace = self.gone_grace;
        self.files.retain(|_, file| {
            file.gone_since
                .is_none_or(|since| now.duration_since(since) < grace)
        });
    }

    /// When the next file will have been gone for long enough.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.files
            .values()
            .filter_map(|file| file.gone_since)
            .min()
            .map(|since| since + self.gone_grace)
    }

    /// Reads a file if it has changed; whether it is there.
    fn read(&mut self, listed: &Listed, bytes_before: u64, ends_open: &mut bool) -> bool {
        if self
            .files
            .get(&listed.path)
            .is_some_and(|file| file.stamp == Some(listed.stamp))
        {
            return true;
        }
        let read = if bytes_before > TREE_BYTES_MAX {
            Err(io::Error::other(format!(
                "all files together have more than {TREE_BYTES_MAX} bytes"
            )))
        } else {
            self.roots.read(listed, self.limits.file_bytes)
        };
        let read = match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            read => read,
        };
        let next_number = &mut self.next_number;
        let file = self.files.entry(listed.path.clone()).or_insert_with(|| {
            *next_number += 1;
            File {
                name: Arc::clone(&listed.name),
                number: *next_number,
                stamp: None,
                digest: [0; 32],
                contents: Contents::default(),
                held: None,
                gone_since: None,
                out_of_reach: false,
            }
        });
        match read {
            Ok(bytes) => {
                file.stamp = Some(listed.stamp);
                *ends_open |= file.take(&bytes, &self.limits);
            }
            Err(error) => {
                // Tried again at every update: its stamp need not change when it can be read.
                file.stamp = None;
                let message = format!("the file cannot be read: {error}");
                file.digest = Sha256::digest(&message).into();
                let remedy = "make it readable; until then its objects stay as they were last read";
                file.contents = Contents::unreadable(&file.name, message, remedy, Scan::default());
            }
        }
        true
    }

    /// Differs whenever the snapshot may.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let files = self.files.values();
        let files = files
            .map(|file| {
                (
                    file.number,
                    file.digest,
                    file.gone_since.is_some(),
                    file.out_of_reach,
                )
            })
            .collect();
        (files, self.unlisted.clone())
    }

    /// The snapshot of all that is known.
    pub(crate) fn snapshot(&self, only_close: bool) -> Snapshot {
        let mut snapshot = Snapshot {
            only_close,
            ..Snapshot::default()
        };
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| file.number);
        let there: Vec<_> = files
            .iter()
            .map(|(_, file)| *file)
            .filter(|file| file.is_there())
            .collect();
        // What an unreadable file held may still stand in it. If it stands elsewhere too, nobody
        // can tell which is meant, so it is neither.
        let unclear: Names = there
            .iter()
            .filter(|file| !file.contents.readable)
            .filter_map(|file| file.held.clone())
            .flatten()
            .collect();
        let mut present = Names::new();
        for file in &there {
            for object in file.contents.objects.iter().chain(&file.contents.unnamed) {
                let name = (object.kind(), object.key().clone());
                if !unclear.contains(&name) {
                    snapshot.insert(object.clone());
                    present.insert(name);
                }
            }
            snapshot
                .findings
                .extend(file.contents.findings.iter().cloned());
        }
        for file in &there {
            snapshot.unreadable_files.extend(file.unreadable(&present));
        }
        for (_, file) in files.iter().filter(|(_, file)| file.gone_since.is_some()) {
            snapshot.unreadable_files.extend(file.gone(&present));
        }
        snapshot.unreadable_files.extend(
            self.unlisted
                .iter()
                .map(|unlisted| self.unlisted(unlisted, &present)),
        );
        snapshot.empty_paths = self.empty_paths();
        snapshot
    }

    /// What was named and holds nothing that is used, so that a wrong path or suffix is told.
    fn empty_paths(&self) -> BTreeMap<String, usize> {
        let below = |root: &Path| {
            let files = self.files.iter().filter(|(path, _)| path.starts_with(root));
            files.map(|(_, file)| &file.contents).collect::<Vec<_>>()
        };
        self.roots
            .names()
            .filter(|root| !self.unlisted.iter().any(|it| it.path.starts_with(root)))
            .map(|root| (root, below(root)))
            .filter(|(_, files)| files.iter().all(|contents| contents.is_empty()))
            // A directory that was reached by another name before was not looked into by this one.
            .filter(|(root, files)| !files.is_empty() || self.listed_once.contains(*root))
            .map(|(root, files)| (root.display().to_string(), files.len()))
            .collect()
    }

    fn unlisted(&self, unlisted: &Unlisted, present: &Names) -> UnreadableFile {
        let Unlisted { path, reason } = unlisted;
        let below = self.files.iter().filter(|(file, _)| file.starts_with(path));
        // Once looked into, its files are known; one that was never readable may hold anything.
        let was_seen = self.listed_once.contains(path) || self.files.contains_key(path);
        let held = below
            .map(|(_, file)| file.held.as_ref())
            .collect::<Option<Vec<_>>>();
        let held = held.filter(|_| was_seen);
        let message = format!("{} cannot be read: {reason}", path.display());
        let remedy = "put back what was there, or remove it inside the directory that the command \
                      names; until then what it held stays as it was last read";
        UnreadableFile {
            place: start_of(&path.to_string_lossy().into()),
            problem: Problem::new(FieldPath::root(), ProblemCode::Unreadable, message, remedy),
            known: held.map(|held| {
                held.into_iter()
                    .flatten()
                    .filter(|name| !present.contains(name))
                    .cloned()
                    .collect()
            }),
            hosts: BTreeSet::new(),
            declares: false,
        }
    }
}

impl File {
    const fn is_there(&self) -> bool {
        self.gone_since.is_none() && !self.out_of_reach
    }

    /// Takes the bytes that stand in the file now.
    fn take(&mut self, bytes: &[u8], limits: &Limits) -> bool {
        let digest = Sha256::digest(bytes).into();
        if digest == self.digest {
            return false;
        }
        self.digest = digest;
        self.contents = document::read(&self.name, bytes, self.number << 32, limits);
        if self.contents.readable {
            let names = self.contents.names();
            let before = self.held.take().filter(|_| self.contents.has_remains);
            self.held = Some(before.into_iter().flatten().chain(names).collect());
        }
        // A flow collection that is cut does not parse; anything else may look whole.
        !matches!(bytes.last(), Some(b'\n' | b'}' | b']'))
    }

    /// What of it cannot be read.
    fn unreadable(&self, present: &Names) -> Vec<UnreadableFile> {
        let Contents {
            objects: _,
            unnamed: _,
            findings,
            parts,
            readable,
            has_remains,
        } = &self.contents;
        if !readable {
            return parts
                .iter()
                .flat_map(|part| unreadable_part(part, self.held.as_ref()))
                .collect();
        }
        let nothing = Names::new();
        let mut unreadable: Vec<_> = parts
            .iter()
            .flat_map(|part| unreadable_part(part, Some(&nothing)))
            .collect();
        // A document that is no object may be what is left of one that was here before.
        let left: Names = self
            .held
            .iter()
            .flatten()
            .filter(|name| !present.contains(name))
            .cloned()
            .collect();
        if *has_remains && !left.is_empty() {
            let of_finding = findings
                .iter()
                .filter_map(|finding| Some((finding.place.clone()?, finding.problem.clone())));
            let of_part = parts
                .iter()
                .map(|part| (part.place.clone(), part.problem.clone()));
            let (place, problem) = of_finding
                .chain(of_part)
                .next()
                .unwrap_or_else(|| (start_of(&self.name), half_written()));
            let problem = Problem {
                code: ProblemCode::Unreadable,
                ..problem
            };
            unreadable.push(UnreadableFile {
                place,
                problem,
                known: Some(left),
                hosts: BTreeSet::new(),
                declares: false,
            });
        }
        unreadable
    }

    /// What it held, while it is not certain that it is deleted.
    fn gone(&self, present: &Names) -> Vec<UnreadableFile> {
        let problem = Problem::new(
            FieldPath::root(),
            ProblemCode::Unreadable,
            "the file is gone; it counts as deleted if it does not come back at once",
            "",
        );
        let place = start_of(&self.name);
        let known = self
            .held
            .as_ref()
            .map(|held| held.difference(present).cloned().collect::<Names>());
        let parts = self.contents.parts.iter().map(|part| part.scan.clone());
        let whole = known
            .as_ref()
            .is_none_or(|known| !known.is_empty())
            .then(Scan::default);
        parts
            .chain(whole)
            .map(|scan| Part {
                place: place.clone(),
                problem: problem.clone(),
                scan,
            })
            .flat_map(|part| unreadable_part(&part, known.as_ref()))
            .collect()
    }
}

fn half_written() -> Problem {
    Problem::new(
        FieldPath::root(),
        ProblemCode::Unreadable,
        "a document is no object: half written?",
        "complete it",
    )
}

fn start_of(name: &Arc<str>) -> Place {
    Place {
        file: Arc::clone(name),
        at: LineColumn { line: 1, column: 1 },
    }
}

/// A part as the snapshot has it. Hosts that were found are staged closed; where others may
/// stand that were not, a second entry without hosts says so, and no new host opens.
fn unreadable_part(part: &Part, known: Option<&Names>) -> Vec<UnreadableFile> {
    let Part {
        place,
        problem,
        scan,
    } = part;
    let Scan {
        hosts,
        kinds,
        namespaces: _,
        incomplete,
    } = scan;
    let declares = kinds.iter().any(|name| {
        let name = name.strip_suffix("List").unwrap_or(name);
        Kind::ALL
            .iter()
            .any(|kind| kind.is_declaring() && kind.name() == name)
    });
    let entry = |hosts: BTreeSet<String>| UnreadableFile {
        place: place.clone(),
        problem: problem.clone(),
        known: known.cloned(),
        hosts,
        declares,
    };
    let mut entries = vec![entry(hosts.iter().map(ToString::to_string).collect())];
    if declares && *incomplete && !hosts.is_empty() {
        entries.push(entry(BTreeSet::new()));
    }
    entries
}

#[cfg(test)]
mod tests;
