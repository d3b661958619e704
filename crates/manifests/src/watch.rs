//! Whole snapshots of a tree at rest (R19).
//!
//! Files are written in pieces and moved in several steps, so nothing is read while the tree
//! changes: it must have been still for [`Settings::still`] between two equal listings, and must
//! be the same after it was read. A tree that does not come to rest for [`Settings::unrest`] is
//! read as it stands, and the snapshot may only close. Notifications of the system only wake the
//! watch early; what has changed is decided by looking (size, times and number of each file, then
//! the digest of its bytes), so that a lost notification costs time and never correctness.
//!
//! # Guarantees
//! - A snapshot was the state of all files at one moment, unless it says `only_close`.
//! - Equal content written again makes no snapshot. There is always at most one, the newest.
//!
//! # Caveat
//! A writer that pauses for longer than [`Settings::still`] at the end of a line, inside a
//! document or between two, leaves a file that looks whole. Files that end in the middle of a line
//! must have been still for [`Settings::still_open_end`]. Writing elsewhere and renaming avoids
//! both.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use controller::ports::ObjectSource;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};
use resources::snapshot::Snapshot;
use tokio::sync::{oneshot, watch};

use crate::{
    files::{Identity, Listing, Roots, identity},
    tree::{Fingerprint, Tree},
    yaml::Limits,
};

/// A burst of notifications is answered with one look in this time.
const LOOK_SPACING: Duration = Duration::from_millis(20);

/// How the tree is watched.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What is read at most.
    pub limits: Limits,
    /// How long the tree must have been still before it is read.
    pub still: Duration,
    /// The same where a changed file ends in the middle of a line.
    pub still_open_end: Duration,
    /// After how much unrest there is a pass that only closes.
    pub unrest: Duration,
    /// After how long a file that is gone counts as deleted.
    pub gone_grace: Duration,
    /// How often everything is looked at without any notification.
    pub poll: Duration,
    /// Whether the system is asked for notifications.
    pub notifications: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            still: Duration::from_millis(100),
            still_open_end: Duration::from_millis(400),
            unrest: Duration::from_secs(2),
            gone_grace: Duration::from_secs(1),
            poll: Duration::from_secs(5),
            notifications: true,
        }
    }
}

/// The watch could not be started.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system gives no thread.
    #[error("no thread for watching files")]
    Thread(#[source] std::io::Error),
    /// It ended before the first snapshot.
    #[error("the watch of the files ended unexpectedly")]
    Ended,
}

/// Watches files until nobody listens any more. Comes back with the first whole snapshot.
///
/// # Errors
/// When the system gives no thread.
pub async fn watch(roots: Roots, settings: Settings) -> Result<ObjectSource, WatchError> {
    let (first, source) = oneshot::channel();
    thread::Builder::new()
        .name("manifests".to_owned())
        .spawn(move || Watch::new(roots, settings, first, Instant::now()).run())
        .map_err(WatchError::Thread)?;
    source.await.map_err(|_| WatchError::Ended)
}

/// Where snapshots go: the first one makes the channel.
enum Outlet {
    Waiting(Option<oneshot::Sender<ObjectSource>>),
    Open(watch::Sender<Arc<Snapshot>>),
}

impl Outlet {
    fn send(&mut self, snapshot: Snapshot) {
        match self {
            Self::Waiting(first) => {
                let (sender, receiver) = watch::channel(Arc::new(snapshot));
                if let Some(first) = first.take() {
                    // A caller that has gone away shows below as a channel without receivers.
                    let _ = first.send(receiver);
                }
                *self = Self::Open(sender);
            }
            Self::Open(sender) => {
                sender.send_if_modified(|current| {
                    let is_new = **current != snapshot;
                    if is_new {
                        *current = Arc::new(snapshot);
                    }
                    is_new
                });
            }
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Waiting(first) => first.as_ref().is_none_or(oneshot::Sender::is_closed),
            Self::Open(sender) => sender.is_closed(),
        }
    }
}

/// A time of change.
struct Unrest {
    /// Since when, or since the last pass that only closes.
    since: Instant,
    /// When the last change was seen.
    changed: Instant,
    /// How long it must be still from there.
    still: Duration,
}

struct Watch {
    tree: Tree,
    settings: Settings,
    outlet: Outlet,
    listing: Listing,
    unrest: Option<Unrest>,
    delivered: Option<(Fingerprint, bool)>,
    notifications: Notifications,
}

impl Watch {
    fn new(
        roots: Roots,
        settings: Settings,
        first: oneshot::Sender<ObjectSource>,
        now: Instant,
    ) -> Self {
        let notifications = Notifications::new(&roots, settings.notifications);
        Self {
            listing: roots.list(),
            tree: Tree::new(roots, settings.limits, settings.gone_grace),
            outlet: Outlet::Waiting(Some(first)),
            unrest: Some(Unrest {
                since: now,
                changed: now,
                still: settings.still,
            }),
            delivered: None,
            notifications,
            settings,
        }
    }

    fn run(mut self) {
        while !self.outlet.is_closed() {
            self.notifications.follow(&self.listing);
            let now = Instant::now();
            let wait = self.wait_until(now).saturating_duration_since(now);
            self.notifications.wait(wait);
            self.step(Instant::now());
        }
    }

    /// What is done whenever it wakes.
    fn step(&mut self, now: Instant) {
        self.look(now);
        self.act(now);
    }

    /// When there is something to do even if nothing is heard. A file's grace may end in a time
    /// of change, but what has changed is read first.
    fn wait_until(&self, now: Instant) -> Instant {
        let poll = now + self.notifications.poll(self.settings.poll);
        let next = match &self.unrest {
            Some(unrest) => Some(unrest.changed + unrest.still),
            None => self.tree.next_deadline(),
        };
        next.map_or(poll, |at| at.min(poll))
    }

    /// Looks whether anything has changed.
    fn look(&mut self, now: Instant) {
        let listing = self.tree.roots().list();
        if listing == self.listing {
            return;
        }
        self.listing = listing;
        let since = self.unrest.as_ref().map_or(now, |unrest| unrest.since);
        self.unrest = Some(Unrest {
            since,
            changed: now,
            still: self.settings.still,
        });
    }

    fn act(&mut self, now: Instant) {
        let Some(unrest) = &mut self.unrest else {
            // At rest: files may have been gone for long enough, or become readable.
            self.tree.update(&self.listing, now);
            return self.deliver(false);
        };
        if now.duration_since(unrest.changed) >= unrest.still {
            let ends_open = self.tree.update(&self.listing, now);
            if ends_open && unrest.still < self.settings.still_open_end {
                unrest.still = self.settings.still_open_end;
                return;
            }
            // What was read is the state of one moment only if nothing changed meanwhile.
            if self.tree.roots().list() == self.listing {
                self.unrest = None;
                self.deliver(false);
            } else {
                unrest.changed = now;
            }
        } else if now.duration_since(unrest.since) >= self.settings.unrest {
            unrest.since = now;
            self.tree.update(&self.listing, now);
            self.deliver(true);
        }
    }

    /// Sends a snapshot if there is anything new in it.
    fn deliver(&mut self, only_close: bool) {
        let state = (self.tree.fingerprint(), only_close);
        if self.delivered.as_ref() != Some(&state) {
            self.outlet.send(self.tree.snapshot(only_close));
            self.delivered = Some(state);
        }
    }
}

/// The system's notifications, as far as there are any.
struct Notifications {
    watcher: Option<RecommendedWatcher>,
    wake: Receiver<()>,
    /// Keeps `wake` open where there is no watcher.
    _waker: SyncSender<()>,
    /// What the user named. The directories around it are watched too: it may be replaced whole.
    named: Arc<BTreeSet<PathBuf>>,
    watched: BTreeMap<PathBuf, Identity>,
    relevant: Arc<Mutex<BTreeSet<PathBuf>>>,
    incomplete: bool,
}

impl Notifications {
    fn new(roots: &Roots, wanted: bool) -> Self {
        let (waker, wake) = sync_channel(1);
        let named: Arc<BTreeSet<PathBuf>> =
            Arc::new(roots.paths().map(|path| absolute(path)).collect());
        let relevant = Arc::new(Mutex::new(BTreeSet::new()));
        let handler = {
            let (waker, relevant, named) =
                (waker.clone(), Arc::clone(&relevant), Arc::clone(&named));
            move |event: notify::Result<Event>| {
                let directories = relevant.lock().unwrap_or_else(PoisonError::into_inner);
                if event.map_or(true, |event| concerns(&event, &named, &directories)) {
                    // Full means that it will wake anyway.
                    let _ = waker.try_send(());
                }
            }
        };
        let watcher = if wanted {
            notify::recommended_watcher(handler)
        } else {
            Err(notify::Error::generic("not wanted"))
        };
        let incomplete = watcher.is_err();
        if let (true, Err(error)) = (wanted, &watcher) {
            tracing::warn!(%error, "file changes are not notified; looking every second instead");
        }
        Self {
            watcher: watcher.ok(),
            wake,
            _waker: waker,
            named,
            watched: BTreeMap::new(),
            relevant,
            incomplete,
        }
    }

    /// How often to look without being told.
    fn poll(&self, poll: Duration) -> Duration {
        if self.incomplete {
            poll.min(Duration::from_secs(1))
        } else {
            poll
        }
    }

    fn wait(&self, timeout: Duration) {
        match self.wake.recv_timeout(timeout) {
            Ok(()) => thread::sleep(LOOK_SPACING.min(timeout)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let _ = self.wake.try_recv();
    }

    /// Watches the directories that there are now.
    fn follow(&mut self, listing: &Listing) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        // Everything that happens in these counts.
        let mut relevant: BTreeSet<PathBuf> = listing
            .directories
            .keys()
            .map(|path| absolute(path))
            .collect();
        for link in self.named.iter().filter(|path| path.is_symlink()) {
            // A file of a mounted ConfigMap changes by what happens beside it and at its target.
            relevant.insert(parent(link).to_owned());
            relevant.extend(link.canonicalize().map(|target| parent(&target).to_owned()));
        }
        let around = self.named.iter().map(|path| parent(path).to_owned());
        let wanted: BTreeMap<PathBuf, Identity> = around
            .chain(relevant.iter().cloned())
            .filter_map(|path| Some((path.clone(), identity(&path)?)))
            .collect();
        if wanted == self.watched {
            return;
        }
        *self.relevant.lock().unwrap_or_else(PoisonError::into_inner) = relevant;
        self.watched.retain(|path, identity| {
            let stays = wanted.get(path) == Some(identity);
            if !stays {
                // It fails where the directory is gone, and its watch with it.
                let _ = watcher.unwatch(path);
            }
            stays
        });
        for (path, identity) in wanted {
            if self.watched.contains_key(&path) {
                continue;
            }
            match watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path, identity);
                }
                Err(error) => {
                    if !self.incomplete {
                        let path = path.display();
                        tracing::warn!(%error, %path, "a directory is not watched; looking every second instead");
                    }
                    self.incomplete = true;
                }
            }
        }
    }
}

/// The path from the root: the system's events name files so.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Whether an event may have changed what counts. Reading is no change, and the directory around
/// a named file may be full of others.
fn concerns(event: &Event, named: &BTreeSet<PathBuf>, directories: &BTreeSet<PathBuf>) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    changes
        && (event.paths.is_empty()
            || event.paths.iter().any(|path| {
                named.contains(path)
                    || directories.contains(path)
                    || directories.contains(parent(path))
            }))
}

#[cfg(test)]
mod tests;
