//! The store on real files: permissions, the lock, demo directories, and a file system without room.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command as Process,
};

use edge_state::{
    command::{Command, EdgePatch, Expected, RoutePatch, Texts},
    exposure::{Handling, handling},
    state::RouteBackend,
};
use edge_store::{ApplyError, DirectoryError, OpenError, Options, Store, Writer};
use model::{
    backend::BackendKind,
    host::{Host, HostPattern},
    id::{BackendId, DomainId, EdgeId, RouteId, TunnelGroupId},
    module::Modules,
    place::{Match, MatchType},
};

fn options(path: &Path) -> Options {
    Options::new(path.to_owned())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn a_directory_is_private_and_so_is_everything_in_it() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("new/data");
    let store = Store::open(&options(&path)).expect("it opens");
    assert_eq!(mode(&path), 0o700);
    let names: BTreeSet<_> = fs::read_dir(&path)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path())
        .inspect(|file| assert_eq!(mode(file), 0o600, "{}", file.display()))
        .filter_map(|file| {
            file.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        })
        .collect();
    assert_eq!(
        names,
        ["closings", "lock", "state.redb"].map(str::to_owned).into()
    );
    run(store.stop());

    // A directory that others may read: tightened while it is empty, refused afterwards.
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).expect("it is new");
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o755)).expect("it is ours");
    run(Store::open(&options(&empty)).expect("it opens").stop());
    assert_eq!(mode(&empty), 0o700);
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o750)).expect("it is ours");
    let error = Store::open(&options(&empty))
        .err()
        .expect("others may read it");
    assert!(matches!(
        &error,
        OpenError::Directory(DirectoryError::Readable(_))
    ));
    assert!(error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn one_process_uses_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(&options(directory.path())).expect("it opens");
    let error = Store::open(&options(directory.path()))
        .err()
        .expect("it is in use");
    let pid = std::process::id();
    assert!(matches!(
        &error,
        OpenError::Directory(DirectoryError::InUse { path: _, pid: Some(found) }) if *found == pid
    ));
    assert!(
        error.to_string().contains(&format!("by process {pid}")),
        "{error}"
    );
    run(store.stop());
    run(Store::open(&options(directory.path()))
        .expect("it is free")
        .stop());
}

#[test]
fn a_directory_is_for_trying_out_or_for_real() {
    let parent = tempfile::tempdir().expect("a directory");
    let demo = |name: &str| Options {
        demo: true,
        ..options(&parent.path().join(name))
    };
    run(Store::open(&demo("demo")).expect("it is new").stop());
    let error = Store::open(&options(&parent.path().join("demo")))
        .err()
        .expect("it is a demo's");
    assert!(matches!(
        &error,
        OpenError::Directory(DirectoryError::IsDemo(_))
    ));
    assert!(error.to_string().contains("--demo"), "{error}");
    run(Store::open(&demo("demo")).expect("it is a demo's").stop());

    run(Store::open(&options(&parent.path().join("real")))
        .expect("it is new")
        .stop());
    let error = Store::open(&demo("real")).err().expect("it is real");
    assert!(matches!(
        &error,
        OpenError::Directory(DirectoryError::IsNotDemo(_))
    ));
}

#[test]
fn a_state_of_another_format_is_refused_and_the_error_says_how_to_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    run(Store::open(&options(directory.path()))
        .expect("it opens")
        .stop());
    {
        let database =
            redb::Database::create(directory.path().join("state.redb")).expect("it opens");
        let transaction = database.begin_write().expect("it is free");
        let numbers = redb::TableDefinition::<&str, u64>::new("numbers");
        transaction
            .open_table(numbers)
            .expect("it is there")
            .insert("format", 2)
            .expect("there is room");
        transaction.commit().expect("there is room");
    }
    let error = Store::open(&options(directory.path()))
        .err()
        .expect("it is newer");
    assert!(matches!(&error, OpenError::Unreadable { .. }));
    let text = error.to_string();
    assert!(
        text.contains("format 2") && text.contains("backup"),
        "{text}"
    );
}

/// A small file system of its own, if the test may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let point = tempfile::tempdir().ok()?;
        let mut mount = Process::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(point.path());
        mount.output().ok()?.status.success().then_some(Self(point))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is left mounted goes with the machine that may mount.
        Process::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .output()
            .ok();
    }
}

/// An API user's edge with one open route.
fn commands(number: u32) -> Vec<Command> {
    let name = number.to_string();
    let host = HostPattern::parse(&format!("h{name}.example.com")).expect("a host");
    let backend = BackendId::TunnelGroup(TunnelGroupId::derived(&[&name]));
    let texts = Texts {
        description: None,
        metadata: Some("x".repeat(4096)),
    };
    vec![
        Command::PutDomain {
            id: DomainId::derived(&[&name]),
            controller: None,
            host: host.clone(),
            namespace: None,
            heir: None,
            declared: true,
            texts: texts.clone(),
        },
        Command::PutBackend {
            id: backend.clone(),
            controller: None,
            kind: BackendKind::TunnelGroup {
                labels: BTreeMap::from([("n".to_owned(), name)]),
            },
            service: None,
            endpoints: BTreeSet::new(),
            texts: texts.clone(),
        },
        Command::CreateEdge {
            id: edge(number),
            controller: None,
            patch: EdgePatch {
                texts,
                hosts: Some(BTreeSet::from([host])),
                ..EdgePatch::default()
            },
        },
        Command::CreateRoute {
            edge: edge(number),
            expected: Expected::Any,
            id: route(number),
            place: Match::new(MatchType::ElementPrefix, "/"),
            patch: Box::new(RoutePatch {
                texts: Texts::default(),
                place: None,
                modules: Modules::default(),
                backend: Some(RouteBackend {
                    enabled: true,
                    id: backend,
                }),
            }),
        },
    ]
}

fn edge(number: u32) -> EdgeId {
    EdgeId::derived(&[&number.to_string()])
}

fn route(number: u32) -> RouteId {
    RouteId::derived(&[&number.to_string()])
}

fn is_open(store: &Store, number: u32) -> bool {
    let host = Host::parse(&format!("h{number}.example.com")).expect("a host");
    matches!(
        handling(&store.current().state, &host, "/"),
        Handling::Served(_)
    )
}

#[test]
fn a_file_system_without_room_opens_nothing_and_closes_what_must_close() {
    let Some(disk) = SmallDisk::mount() else {
        // Without the right to mount, the disk in memory of the unit tests stands for it.
        return;
    };
    let data = disk.0.path().join("data");
    let filler = disk.0.path().join("filler");
    run(async {
        let store = Store::open(&options(&data)).expect("it opens");
        for command in commands(0) {
            store
                .apply(command, &Writer::EDGE)
                .await
                .expect("there is room");
        }
        let mut file = fs::File::create(&filler).expect("there is room");
        while file.write_all(&[0; 4096]).is_ok() {}
        drop(file);

        // What fits into pages that redb has already may still be saved; then nothing more.
        let mut refused = None;
        for number in 1..400 {
            for command in commands(number) {
                if let Err(error) = store.apply(command, &Writer::EDGE).await {
                    refused.get_or_insert((number, error));
                }
            }
            if refused.is_some() {
                break;
            }
        }
        let (number, error) = refused.expect("the disk is full");
        assert!(matches!(error, ApplyError::Unavailable { .. }), "{error}");
        assert!(!is_open(&store, number), "something opens on a full disk");
        assert!(is_open(&store, 0));

        let close = Command::DeleteRouteBackend {
            edge: edge(0),
            expected: Expected::Any,
            id: route(0),
        };
        assert!(store.apply(close, &Writer::EDGE).await.is_err());
        assert!(!is_open(&store, 0), "what must close stays open");
        store.stop().await;

        // Still full: whether it can be opened or not, it is closed there.
        if let Ok(store) = Store::open(&options(&data)) {
            assert!(!is_open(&store, 0));
            store.stop().await;
        }
        fs::remove_file(&filler).expect("it is there");
        let store = Store::open(&options(&data)).expect("there is room again");
        assert!(!is_open(&store, 0), "a restart brings it back");
        for command in commands(1000) {
            store
                .apply(command, &Writer::EDGE)
                .await
                .expect("there is room again");
        }
        assert!(is_open(&store, 1000));
        store.stop().await;
    });
}
