//! What the tests of the store share: a disk in memory that can be cut off, fail or be full, and
//! a small edge.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use edge_state::{
    command::{Command, EdgeSpec, Expected, RecordSpec, RouteSpec, Texts},
    state::{Phase, RouteBackend},
};
use model::{
    backend::BackendKind,
    host::HostPattern,
    id::{BackendId, DomainId, EdgeId, RouteId, TunnelGroupId},
    module::{EdgeDemands, Modules},
    object::ObjectRef,
    place::{Match, MatchType},
    time::{Span, Timestamp},
};
use redb::StorageBackend;

use crate::{disk::Disk, journal, store::Options};

/// How a disk misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The power goes before this operation, counted from zero.
    CutAt(u64),
    /// Every write to the database fails; the journal is written in place and goes on working.
    Full,
    /// Every write fails.
    Broken,
}

#[derive(Debug)]
struct Platter {
    /// What programs see.
    seen: Vec<u8>,
    /// What is certain to survive a cut.
    synced: Vec<u8>,
    /// Writes since, in order: offset and bytes. A changed length is a write of no bytes.
    unsynced: Vec<(usize, Vec<u8>)>,
    journal: Vec<u8>,
    /// The last write to the journal, if the power went in it.
    torn_journal: Option<(usize, Vec<u8>)>,
    fault: Fault,
    operations: u64,
    /// Whether the database has got its place.
    is_adopted: bool,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub(crate) struct FakeDisk(Arc<Mutex<Platter>>);

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if bytes.len() < offset + data.len() {
        bytes.resize(offset + data.len(), 0);
    }
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

fn error(text: &str) -> io::Error {
    io::Error::other(text.to_owned())
}

/// What of the unsynced writes has reached the platter when the power goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survives {
    Nothing,
    Everything,
    /// The first half of the writes, and half of the next one.
    TornHalf,
    /// Every second write: disks reorder.
    EverySecond,
    /// The last write alone.
    LastOnly,
}

impl Survives {
    pub(crate) const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Everything,
        Self::TornHalf,
        Self::EverySecond,
        Self::LastOnly,
    ];
}

impl FakeDisk {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Platter {
            seen: Vec::new(),
            synced: Vec::new(),
            unsynced: Vec::new(),
            journal: journal::empty(),
            torn_journal: None,
            fault: Fault::None,
            operations: 0,
            is_adopted: false,
        })))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.platter().fault = fault;
    }

    pub(crate) fn operations(&self) -> u64 {
        self.platter().operations
    }

    pub(crate) fn journal(&self) -> Vec<u8> {
        self.platter().journal.clone()
    }

    /// What is there when the power comes back.
    pub(crate) fn after_cut(&self, survives: Survives) -> Self {
        let platter = self.platter();
        let mut bytes = platter.synced.clone();
        let count = platter.unsynced.len();
        for (number, (offset, data)) in platter.unsynced.iter().enumerate() {
            let kept = match survives {
                Survives::Nothing => 0,
                Survives::Everything => data.len(),
                Survives::TornHalf if number < count / 2 => data.len(),
                Survives::TornHalf if number == count / 2 => data.len() / 2,
                Survives::TornHalf => 0,
                Survives::EverySecond if number % 2 == 0 => data.len(),
                Survives::EverySecond => 0,
                Survives::LastOnly if number + 1 == count => data.len(),
                Survives::LastOnly => 0,
            };
            if kept > 0 {
                put(&mut bytes, *offset, &data[..kept]);
            }
        }
        let mut journal = platter.journal.clone();
        if let Some((offset, data)) = &platter.torn_journal {
            put(&mut journal, *offset, &data[..data.len() / 2]);
        }
        let after = Self::new();
        {
            let mut new = after.platter();
            new.is_adopted = platter.is_adopted;
            if platter.is_adopted {
                new.seen.clone_from(&bytes);
                new.synced = bytes;
            }
            new.journal = journal;
        }
        after
    }
}

impl Platter {
    /// Counts an operation that changes something, and fails it where the fault says so.
    fn operate(&mut self, on_journal: bool) -> io::Result<()> {
        let number = self.operations;
        self.operations += 1;
        match self.fault {
            Fault::None => Ok(()),
            Fault::CutAt(cut) if number < cut => Ok(()),
            Fault::CutAt(_) => Err(error("the power is gone")),
            Fault::Full if on_journal => Ok(()),
            Fault::Full => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Fault::Broken => Err(error("the disk is broken")),
        }
    }
}

impl StorageBackend for FakeDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = offset as usize;
        let platter = self.platter();
        let bytes = platter.seen.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut platter = self.platter();
        platter.operate(false)?;
        platter.seen.resize(len as usize, 0);
        // A length is kept at once: to lose it is to lose the writes behind it, which is covered.
        platter.synced.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.platter();
        platter.operate(false)?;
        platter.synced = platter.seen.clone();
        platter.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        if let Err(error) = platter.operate(false) {
            if let Fault::CutAt(_) = platter.fault {
                // The write that the cut hit may have begun.
                platter
                    .unsynced
                    .push((offset as usize, data[..data.len() / 2].to_vec()));
                platter.fault = Fault::CutAt(0);
            }
            return Err(error);
        }
        put(&mut platter.seen, offset as usize, data);
        platter.unsynced.push((offset as usize, data.to_vec()));
        Ok(())
    }
}

impl Disk for FakeDisk {
    type Backend = Self;

    fn has_database(&self) -> io::Result<bool> {
        Ok(self.platter().is_adopted)
    }

    fn draft(&mut self) -> io::Result<Self> {
        let mut platter = self.platter();
        platter.operate(false)?;
        platter.seen.clear();
        platter.synced.clear();
        platter.unsynced.clear();
        drop(platter);
        Ok(self.clone())
    }

    fn adopt_draft(&mut self) -> io::Result<()> {
        let mut platter = self.platter();
        platter.operate(false)?;
        platter.synced = platter.seen.clone();
        platter.unsynced.clear();
        platter.is_adopted = true;
        Ok(())
    }

    fn database(&mut self) -> io::Result<Self> {
        Ok(self.clone())
    }

    fn read_journal(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.journal())
    }

    fn write_journal(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        if let Err(error) = platter.operate(true) {
            if let Fault::CutAt(_) = platter.fault {
                platter.torn_journal = Some((offset, bytes.to_vec()));
            }
            return Err(error);
        }
        put(&mut platter.journal, offset, bytes);
        Ok(())
    }
}

/// Options with a clock that a test sets.
pub(crate) fn options(clock: &Arc<AtomicU64>) -> Options {
    let clock = Arc::clone(clock);
    Options {
        clock: Arc::new(move || Timestamp(clock.load(Ordering::SeqCst))),
        ..Options::new(PathBuf::from("data"))
    }
}

fn backend(number: u8) -> BackendId {
    BackendId::TunnelGroup(TunnelGroupId::derived(&[&number.to_string()]))
}

pub(crate) fn host(number: u8) -> HostPattern {
    HostPattern::parse(&format!("h{number}.example.com")).expect("a host")
}

pub(crate) fn edge(number: u8) -> EdgeId {
    EdgeId::derived(&[&number.to_string()])
}

pub(crate) fn route(edge: u8, path: &str) -> RouteId {
    RouteId::derived(&[&edge.to_string(), path])
}

/// What hosts and routes need.
pub(crate) fn groundwork() -> Vec<Command> {
    let domain = |number: u8| Command::PutDomain {
        id: DomainId::derived(&[&number.to_string()]),
        controller: Some("c".to_owned()),
        host: host(number),
        namespace: Some("default".to_owned()),
        heir: None,
        declared: true,
        texts: Texts::default(),
    };
    let group = |number: u8| Command::PutBackend {
        id: backend(number),
        controller: Some("c".to_owned()),
        kind: BackendKind::TunnelGroup {
            labels: BTreeMap::from([("app".to_owned(), number.to_string())]),
        },
        service: None,
        endpoints: BTreeSet::new(),
        texts: Texts::default(),
    };
    (0..2).map(domain).chain((0..2).map(group)).collect()
}

/// A route of a [`replace`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) path: &'static str,
    pub(crate) backend: Option<u8>,
    pub(crate) close_after: Option<Span>,
}

/// A whole edge with these routes.
pub(crate) fn replace(number: u8, routes: &[Wanted]) -> Command {
    let spec = |wanted: &Wanted| RouteSpec {
        id: route(number, wanted.path),
        place: Match::new(MatchType::ElementPrefix, wanted.path),
        modules: Modules::default(),
        backend: wanted.backend.map(|id| RouteBackend {
            enabled: true,
            id: backend(id),
        }),
        also_refuse: BTreeSet::new(),
        description: String::new(),
        // Long enough that a full disk is noticed soon.
        metadata: "x".repeat(4000),
        record: Some(RecordSpec {
            owner: ObjectRef::new("Ingress", "default", "web"),
            wanted: None,
            serving: None,
            has_access_modules: false,
            rests_on: BTreeSet::new(),
            phase: if wanted.close_after.is_some() {
                Phase::Lost
            } else {
                Phase::Open
            },
            close_after: wanted.close_after,
        }),
    };
    Command::ReplaceEdge(Box::new(EdgeSpec {
        id: edge(number),
        expected: Expected::Any,
        controller: Some("c".to_owned()),
        hosts: BTreeSet::from([host(number)]),
        demands: EdgeDemands::default(),
        certificate: None,
        description: String::new(),
        metadata: String::new(),
        routes: routes.iter().map(spec).collect(),
    }))
}

/// A route that is open on a backend.
pub(crate) const fn open(path: &'static str, backend: u8) -> Wanted {
    Wanted {
        path,
        backend: Some(backend),
        close_after: None,
    }
}

/// A closed route.
pub(crate) const fn closed(path: &'static str) -> Wanted {
    Wanted {
        path,
        backend: None,
        close_after: None,
    }
}
