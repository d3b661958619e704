//! The store against a disk that is cut off, breaks, or is full.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use edge_state::{
    command::{Command, Expected, Texts},
    exposure::{Handling, Why, handling},
    state::{EdgeState, Phase, Role},
};
use model::{
    host::Host,
    id::KeyId,
    secret::Digest,
    time::{Span, Timestamp},
};

use crate::{
    journal::{self, Closings},
    store::{ApplyError, OpenError, Store, Writer},
    testing::{
        FakeDisk, Fault, Survives, Wanted, closed, edge, groundwork, host, open, options, replace,
        route,
    },
};

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), future).await };
    runtime
        .expect("a runtime")
        .block_on(limited)
        .expect("it ends")
}

fn clock() -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(1_000))
}

fn handling_of(state: &EdgeState, number: u8, path: &str) -> Handling {
    handling(
        state,
        &Host::parse(host(number).as_str()).expect("a host"),
        path,
    )
}

fn is_open(store: &Store, number: u8, path: &str) -> bool {
    matches!(
        handling_of(&store.current().state, number, path),
        Handling::Served(_)
    )
}

async fn must(store: &Store, command: Command) {
    store
        .apply(command, &Writer::EDGE)
        .await
        .expect("the disk is fine");
}

async fn begin(store: &Store) {
    for command in groundwork() {
        must(store, command).await;
    }
}

/// Commands that make, change, close and delete.
fn script() -> Vec<Command> {
    let mut script = groundwork();
    script.extend([
        replace(0, &[open("/", 0), closed("/admin")]),
        replace(1, &[open("/", 1)]),
        replace(0, &[open("/", 1), open("/admin", 0)]),
        Command::DeleteRouteBackend {
            edge: edge(0),
            expected: Expected::Any,
            id: route(0, "/"),
        },
        Command::DeleteEdge {
            id: edge(1),
            expected: Expected::Any,
        },
        Command::RaiseTerm { term: 3 },
    ]);
    script
}

/// The states after each command of the script, the empty one first.
fn states_of_script() -> Vec<EdgeState> {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk, &options(&clock())).expect("it opens");
        let mut states = vec![EdgeState::clone(&store.current().state)];
        for command in script() {
            must(&store, command).await;
            states.push(EdgeState::clone(&store.current().state));
        }
        states
    })
}

/// Plays the script until the power goes; how many commands were acknowledged.
async fn play(disk: &FakeDisk) -> usize {
    let Ok(store) = Store::open_on(disk.clone(), &options(&clock())) else {
        return 0;
    };
    let mut acknowledged = 0;
    for command in script() {
        match store.apply(command, &Writer::EDGE).await {
            Ok(_) => acknowledged += 1,
            Err(_) => break,
        }
    }
    store.stop().await;
    acknowledged
}

#[test]
fn a_cut_at_any_write_leaves_the_state_before_or_after_whole() {
    let states = states_of_script();
    let whole = FakeDisk::new();
    assert_eq!(run(play(&whole)), script().len());
    let operations = whole.operations();
    assert!(operations > 50, "{operations}");
    for cut in 0..operations {
        let disk = FakeDisk::new();
        disk.set(Fault::CutAt(cut));
        let acknowledged = run(play(&disk));
        for survives in Survives::ALL {
            let after = disk.after_cut(survives);
            let store = Store::open_on(after, &options(&clock()))
                .unwrap_or_else(|error| panic!("cut {cut}, {survives:?} survives: {error}"));
            let state = store.current();
            // What was acknowledged is there; the command after it may be, whole.
            let fits = states[acknowledged..]
                .iter()
                .take(2)
                .any(|known| same(known, &state.state));
            // A closing may have got into the journal when its command was cut off.
            let noted = states.get(acknowledged + 1).is_some_and(|next| {
                !edge_state::closing::closings(&states[acknowledged], next).is_empty()
            });
            assert!(
                fits || noted && only_closed(&states[acknowledged], &state.state),
                "cut {cut}, {survives:?} survives, {acknowledged} acknowledged"
            );
        }
    }
}

#[test]
fn a_cut_while_the_last_cut_is_mended_does_no_more_harm() {
    let states = states_of_script();
    let whole = FakeDisk::new();
    run(play(&whole));
    // Cuts while commands are saved; the first few are those of making the database.
    for cut in (whole.operations() / 2..whole.operations()).step_by(5) {
        let disk = FakeDisk::new();
        disk.set(Fault::CutAt(cut));
        let acknowledged = run(play(&disk));
        let first = disk.after_cut(Survives::TornHalf);
        for second in 0.. {
            let mending = first.after_cut(Survives::Everything);
            mending.set(Fault::CutAt(second));
            let opened = Store::open_on(mending.clone(), &options(&clock()));
            let done = opened.is_ok();
            if let Ok(store) = opened {
                run(store.stop());
            }
            for survives in Survives::ALL {
                let after = mending.after_cut(survives);
                let store = Store::open_on(after, &options(&clock())).unwrap_or_else(|error| {
                    panic!("cuts {cut} and {second}, {survives:?}: {error}")
                });
                let state = &store.current().state;
                let fits = states[acknowledged..]
                    .iter()
                    .take(2)
                    .any(|known| same(known, state));
                assert!(fits, "cuts {cut} and {second}, {survives:?} survives");
            }
            if done {
                break;
            }
        }
    }
}

/// The same but for revisions: numbers of an attempt are not used again.
fn same(one: &EdgeState, other: &EdgeState) -> bool {
    let mut other = other.clone();
    other.revision = one.revision;
    *one == other
}

/// Whether every request is handled as before or refused as closed.
fn only_closed(before: &EdgeState, after: &EdgeState) -> bool {
    (0..2).all(|number| {
        ["/", "/admin"].iter().all(|path| {
            let now = handling_of(after, number, path);
            now == handling_of(before, number, path) || now == Handling::Refused(Why::Closed)
        })
    })
}

#[test]
fn what_is_acknowledged_survives_a_restart_and_costs_nothing_when_repeated() {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk.clone(), &options(&clock())).expect("it opens");
        begin(&store).await;
        let wanted = replace(0, &[open("/", 0)]);
        let first = store
            .apply(wanted.clone(), &Writer::EDGE)
            .await
            .expect("it is fine");
        assert!(first.changed);
        let writes = disk.operations();
        let again = store
            .apply(wanted, &Writer::EDGE)
            .await
            .expect("it is fine");
        assert!(!again.changed);
        assert_eq!(
            (again.revision, disk.operations()),
            (first.revision, writes)
        );
        let before = store.current();
        store.stop().await;
        let store = Store::open_on(disk, &options(&clock())).expect("it opens");
        assert_eq!(store.current().state, before.state);
        assert!(store.current().table.host("h0.example.com").is_some());
    });
}

#[test]
fn on_a_full_disk_nothing_opens_and_what_must_close_closes() {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk.clone(), &options(&clock())).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[open("/", 0), open("/a", 1)])).await;
        disk.set(Fault::Full);

        let opens = store
            .apply(replace(1, &[open("/", 1)]), &Writer::EDGE)
            .await;
        assert!(matches!(
            opens,
            Err(ApplyError::Unavailable {
                may_have_applied: true,
                ..
            })
        ));
        assert_eq!(
            handling_of(&store.current().state, 1, "/"),
            Handling::Refused(Why::NoEdge)
        );

        // It closes one route and changes another: the one is closed, the other stays.
        let mixed = store
            .apply(replace(0, &[closed("/"), open("/a", 0)]), &Writer::EDGE)
            .await;
        assert!(matches!(mixed, Err(ApplyError::Unavailable { .. })));
        assert!(!is_open(&store, 0, "/"));
        let Handling::Served(served) = handling_of(&store.current().state, 0, "/a") else {
            panic!("/a is closed");
        };
        assert_eq!(
            served.set.backend,
            backend_of(&replace(0, &[open("/a", 1)]))
        );

        // The power goes: a restart, with room again, comes up closed there.
        store.stop().await;
        disk.set(Fault::None);
        let after = disk.after_cut(Survives::Nothing);
        let store = Store::open_on(after.clone(), &options(&clock())).expect("it opens");
        assert!(!is_open(&store, 0, "/"));
        assert!(is_open(&store, 0, "/a"));
        // It is saved now, and the journal is done with.
        let entry = journal::read(&after.journal()).expect("it is whole");
        assert_eq!(entry.closings, Closings::These([].into()));
        must(&store, replace(0, &[open("/", 0), open("/a", 1)])).await;
        store.stop().await;
        let store = Store::open_on(after, &options(&clock())).expect("it opens");
        assert!(is_open(&store, 0, "/"), "an old closing comes back");
    });
}

fn backend_of(command: &Command) -> model::id::BackendId {
    let Command::ReplaceEdge(spec) = command else {
        panic!("another command")
    };
    spec.routes[0].backend.clone().expect("it is open").id
}

#[test]
fn when_there_is_room_again_the_store_goes_on_by_itself() {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk.clone(), &options(&clock())).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[open("/", 0)])).await;
        disk.set(Fault::Full);
        let close = replace(0, &[closed("/")]);
        assert!(store.apply(close.clone(), &Writer::EDGE).await.is_err());
        assert!(!is_open(&store, 0, "/"));
        disk.set(Fault::None);
        let mut saving = store.saving();
        saving
            .wait_for(|saving| *saving)
            .await
            .expect("the store lives");
        must(&store, close).await;
        let now = store.current();
        store.stop().await;
        let store = Store::open_on(disk, &options(&clock())).expect("it opens");
        assert_eq!(store.current().state, now.state);
    });
}

#[test]
fn a_closing_holds_even_where_nothing_at_all_can_be_written() {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk.clone(), &options(&clock())).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[open("/", 0)])).await;
        disk.set(Fault::Broken);
        let gone = Command::DeleteEdge {
            id: edge(0),
            expected: Expected::Any,
        };
        assert!(store.apply(gone, &Writer::EDGE).await.is_err());
        assert!(!is_open(&store, 0, "/"));
    });
}

const LOST: Wanted = Wanted {
    path: "/",
    backend: Some(0),
    close_after: Some(Span(500)),
};

#[test]
fn the_edge_closes_at_the_deadline_by_itself() {
    run(async {
        let (disk, clock) = (FakeDisk::new(), clock());
        let store = Store::open_on(disk, &options(&clock)).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[LOST])).await;
        let mut revisions = store.subscribe();
        revisions.mark_unchanged();
        assert!(is_open(&store, 0, "/"));
        clock.store(1_499, Ordering::SeqCst);
        must(&store, replace(1, &[])).await;
        assert!(is_open(&store, 0, "/"), "a millisecond too early");
        clock.store(1_500, Ordering::SeqCst);
        while is_open(&store, 0, "/") {
            revisions.changed().await.expect("the store lives");
        }
        let state = store.current();
        let record = state.state.edges[&edge(0)].routes[&route(0, "/")]
            .record
            .clone();
        let record = record.expect("it has one");
        assert_eq!(
            (record.phase, record.since),
            (Phase::Closed, Timestamp(1_500))
        );
    });
}

#[test]
fn a_deadline_that_passed_while_the_edge_was_down_is_kept_at_start() {
    run(async {
        let (disk, clock) = (FakeDisk::new(), clock());
        let store = Store::open_on(disk.clone(), &options(&clock)).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[LOST])).await;
        store.stop().await;
        clock.store(9_000, Ordering::SeqCst);
        let store = Store::open_on(disk.clone(), &options(&clock)).expect("it opens");
        assert!(!is_open(&store, 0, "/"));
        store.stop().await;
    });
}

#[test]
fn a_deadline_is_kept_on_a_full_disk_too() {
    run(async {
        let (disk, clock) = (FakeDisk::new(), clock());
        let store = Store::open_on(disk.clone(), &options(&clock)).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[LOST])).await;
        disk.set(Fault::Full);
        let mut revisions = store.subscribe();
        revisions.mark_unchanged();
        clock.store(9_000, Ordering::SeqCst);
        while is_open(&store, 0, "/") {
            revisions.changed().await.expect("the store lives");
        }
        store.stop().await;
        // The journal brings it back closed, though the clock has been set back.
        disk.set(Fault::None);
        clock.store(1_100, Ordering::SeqCst);
        let after = disk.after_cut(Survives::Nothing);
        let store = Store::open_on(after, &options(&clock)).expect("it opens");
        assert!(!is_open(&store, 0, "/"));
    });
}

#[test]
fn a_damaged_state_is_refused_as_a_whole() {
    run(async {
        let disk = FakeDisk::new();
        let store = Store::open_on(disk.clone(), &options(&clock())).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[open("/", 0)])).await;
        store.stop().await;
        let mut found = 0;
        for place in [0_u64, 5, 5_000, 9_000, 20_000, 40_000] {
            let damaged = disk.after_cut(Survives::Everything);
            let mut byte = [0; 64];
            if redb::StorageBackend::read(&damaged, place, &mut byte).is_err() {
                continue;
            }
            for byte in &mut byte {
                *byte ^= 0x55;
            }
            redb::StorageBackend::write(&damaged, place, &byte).expect("it is memory");
            match Store::open_on(damaged, &options(&clock())) {
                // The damage hit what is not in use.
                Ok(store) => assert!(is_open(&store, 0, "/"), "part of the state is served"),
                Err(OpenError::Unreadable { .. } | OpenError::Disk { .. }) => found += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(found > 0);
    });
}

#[test]
fn a_store_that_refuses_answers_so() {
    run(async {
        let store = Store::refusing();
        assert!(store.current().table.refuses_everything().is_some());
        let answer = store
            .apply(Command::RaiseTerm { term: 1 }, &Writer::EDGE)
            .await;
        assert!(matches!(
            answer,
            Err(ApplyError::Unavailable {
                may_have_applied: false,
                ..
            })
        ));
    });
}

#[test]
fn keys_are_found_by_the_digest_of_their_token() {
    run(async {
        let store = Store::open_on(FakeDisk::new(), &options(&clock())).expect("it opens");
        let (id, token_digest) = (KeyId::derived(&["0"]), Digest([7; 32]));
        let texts = Texts::default();
        must(
            &store,
            Command::CreateKey {
                id: id.clone(),
                role: Role::Write,
                token_digest,
                texts,
            },
        )
        .await;
        begin(&store).await;
        assert_eq!(
            store.current().find_key(&token_digest),
            Some((id.clone(), Role::Write))
        );
        assert_eq!(store.current().find_key(&Digest([8; 32])), None);
        must(&store, Command::DeleteKey { id }).await;
        assert_eq!(store.current().find_key(&token_digest), None);
    });
}

#[test]
fn many_writers_are_answered_each() {
    run(async {
        let store = Store::open_on(FakeDisk::new(), &options(&clock())).expect("it opens");
        begin(&store).await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200_u64 {
            let store = store.clone();
            tasks.spawn(async move {
                store
                    .apply(Command::RaiseTerm { term: number }, &Writer::EDGE)
                    .await
            });
        }
        let mut applied = 0;
        while let Some(answer) = tasks.join_next().await {
            match answer.expect("no task panics") {
                Ok(_) => applied += 1,
                Err(ApplyError::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(applied > 0);
        assert_eq!(store.current().state.term, 199);
    });
}

#[test]
fn without_its_thread_the_store_refuses_everything() {
    run(async {
        let time = clock();
        let mut options = options(&time);
        let good = Arc::clone(&options.clock);
        // A clock that breaks when it is set to zero stands for any panic on the store's thread.
        options.clock = Arc::new(move || {
            let now = good();
            assert_ne!(now, Timestamp(0), "the clock broke");
            now
        });
        let store = Store::open_on(FakeDisk::new(), &options).expect("it opens");
        begin(&store).await;
        must(&store, replace(0, &[open("/", 0)])).await;
        assert!(store.current().table.refuses_everything().is_none());
        time.store(0, Ordering::SeqCst);
        let answer = store.apply(replace(1, &[]), &Writer::EDGE).await;
        assert!(matches!(
            answer,
            Err(ApplyError::Unavailable {
                may_have_applied: true,
                ..
            })
        ));
        let mut revisions = store.subscribe();
        // The thread ends, and what it published goes with it.
        while revisions.changed().await.is_ok() {}
        assert!(store.current().table.refuses_everything().is_some());
    });
}
