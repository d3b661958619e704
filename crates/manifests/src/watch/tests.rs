//! The watch over real directories. Tests wait for states, with a limit; only writers that must
//! be slow pause.

use std::fs;

use resources::{
    kinds::Kind,
    snapshot::{ObjectKey, Presence},
};

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Without polling, so that only notifications can be what wakes it.
fn notified() -> Settings {
    Settings {
        poll: Duration::from_secs(3600),
        ..Settings::default()
    }
}

fn secret(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{k: '{value}'}}\n"
    )
}

/// `there`, `pending`, `missing` or `invalid`, and the value where there is one.
fn found(snapshot: &Snapshot, name: &str) -> String {
    match snapshot.find(
        Kind::Secret,
        &snapshot.secrets,
        &ObjectKey::new("default", name),
    ) {
        Presence::There(object) => match &object.value {
            Ok(secret) => String::from_utf8_lossy(secret.data["k"].expose()).into_owned(),
            Err(_) => "invalid".to_owned(),
        },
        Presence::Pending => "pending".to_owned(),
        Presence::Missing => "missing".to_owned(),
    }
}

/// With more patience than a busy machine can use up.
fn patient() -> Settings {
    Settings {
        still: Duration::from_secs(1),
        still_open_end: Duration::from_secs(1),
        unrest: LIMIT,
        ..notified()
    }
}

async fn start(paths: &[&Path], settings: Settings) -> ObjectSource {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    let roots = Roots::open(&paths, settings.limits.file_bytes).expect("there");
    watch(roots, settings).await.expect("started")
}

/// Waits until an object is found so; returns how it was found in each snapshot before.
async fn until(source: &mut ObjectSource, name: &str, wanted: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let waiting = async {
        loop {
            let now = found(&source.borrow_and_update(), name);
            if now == wanted {
                return;
            }
            seen.push(now);
            source.changed().await.expect("the watch goes on");
        }
    };
    let done = tokio::time::timeout(LIMIT, waiting).await;
    assert!(done.is_ok(), "{name} is not {wanted} in time but {seen:?}");
    seen
}

/// A writer that is slower than the watch looks, and faster than it rests.
fn pause() {
    thread::sleep(Duration::from_millis(30));
}

#[tokio::test]
async fn files_come_change_and_go() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.yaml"), secret("a", "1")).expect("written");
    let settings = Settings {
        gone_grace: Duration::from_secs(3),
        ..notified()
    };
    let mut source = start(&[dir.path()], settings).await;
    assert_eq!(found(&source.borrow(), "a"), "1");
    fs::create_dir(dir.path().join("sub")).expect("created");
    fs::write(
        dir.path().join("sub/b.json"),
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"},"stringData":{"k":"2"}}"#,
    )
    .expect("written");
    until(&mut source, "b", "2").await;
    fs::write(dir.path().join("a.yaml"), secret("a", "3")).expect("written");
    until(&mut source, "a", "3").await;
    fs::write(dir.path().join("sub/new"), secret("b", "4")).expect("written");
    fs::rename(dir.path().join("sub/new"), dir.path().join("sub/b.json")).expect("renamed");
    until(&mut source, "b", "4").await;
    fs::remove_file(dir.path().join("a.yaml")).expect("removed");
    let seen = until(&mut source, "a", "missing").await;
    assert_eq!(seen.last().map(String::as_str), Some("pending"), "{seen:?}");
}

#[tokio::test]
async fn a_named_file_is_watched_through_renames_and_among_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    fs::write(&path, secret("a", "1")).expect("written");
    fs::write(dir.path().join("other.yaml"), secret("other", "1")).expect("written");
    let mut source = start(&[&path], notified()).await;
    assert_eq!(found(&source.borrow(), "other"), "missing");
    for value in ["2", "3"] {
        fs::write(dir.path().join(".a.yaml.tmp"), secret("a", value)).expect("written");
        fs::rename(dir.path().join(".a.yaml.tmp"), &path).expect("renamed");
        until(&mut source, "a", value).await;
    }
}

#[tokio::test]
async fn a_replaced_directory_is_watched_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).expect("created");
    fs::write(tree.join("a.yaml"), secret("a", "1")).expect("written");
    let mut source = start(&[&tree], notified()).await;
    fs::create_dir(dir.path().join("new")).expect("created");
    fs::write(dir.path().join("new/a.yaml"), secret("a", "2")).expect("written");
    fs::rename(&tree, dir.path().join("old")).expect("renamed");
    fs::rename(dir.path().join("new"), &tree).expect("renamed");
    until(&mut source, "a", "2").await;
    fs::write(tree.join("a.yaml"), secret("a", "3")).expect("written");
    until(&mut source, "a", "3").await;
}

#[tokio::test]
async fn a_config_map_mount_changes_in_one_step() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().expect("a directory");
    let fill = |version: &str| {
        fs::create_dir(dir.path().join(version)).expect("created");
        for name in ["a", "b"] {
            fs::write(
                dir.path().join(version).join(format!("{name}.yaml")),
                secret(name, version),
            )
            .expect("written");
        }
        symlink(version, dir.path().join("..tmp")).expect("linked");
        fs::rename(dir.path().join("..tmp"), dir.path().join("..data")).expect("renamed");
    };
    fill("..1");
    for name in ["a.yaml", "b.yaml"] {
        symlink(format!("..data/{name}"), dir.path().join(name)).expect("linked");
    }
    let mut source = start(&[dir.path()], notified()).await;
    assert_eq!(found(&source.borrow(), "b"), "..1");
    let mut of_file = start(&[&dir.path().join("a.yaml")], notified()).await;
    fill("..2");
    until(&mut source, "a", "..2").await;
    assert_eq!(found(&source.borrow(), "b"), "..2");
    until(&mut of_file, "a", "..2").await;
}

#[tokio::test]
async fn without_notifications_it_looks_by_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.yaml"), secret("a", "1")).expect("written");
    let mut source = start(
        &[dir.path()],
        Settings {
            notifications: false,
            ..notified()
        },
    )
    .await;
    fs::write(dir.path().join("a.yaml"), secret("a", "2")).expect("written");
    until(&mut source, "a", "2").await;
}

#[tokio::test]
async fn the_same_bytes_again_make_no_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.yaml"), secret("a", "1")).expect("written");
    let mut source = start(&[dir.path()], notified()).await;
    let first = Arc::clone(&source.borrow_and_update());
    let writer = thread::spawn({
        let path = dir.path().join("a.yaml");
        move || {
            for _ in 0..20 {
                fs::write(&path, secret("a", "1")).expect("written");
                pause();
            }
            // Long enough for a snapshot of all that, if there were one.
            thread::sleep(Duration::from_millis(300));
            fs::write(&path, secret("a", "2")).expect("written");
        }
    });
    assert_eq!(until(&mut source, "a", "2").await, ["1"]);
    assert_eq!(found(&first, "a"), "1");
    writer.join().expect("written");
}

/// Every prefix of a file at the end of a line stands there for longer than the watch needs to
/// see it, and shorter than the tree must be still: none of them is ever delivered.
#[tokio::test]
async fn a_file_that_is_written_in_pieces_is_read_once() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    let text: String = ["a", "b", "c", "d"]
        .map(|name| secret(name, "new"))
        .join("---\n");
    fs::write(&path, text.replace("new", "old")).expect("written");
    let mut source = start(&[dir.path()], patient()).await;
    let writer = thread::spawn(move || {
        let mut file = fs::File::create(&path).expect("created");
        for line in text.split_inclusive('\n') {
            pause();
            file.write_all(line.as_bytes()).expect("written");
        }
    });
    let seen = until(&mut source, "d", "new").await;
    assert!(seen.iter().all(|seen| seen == "old"), "{seen:?}");
    assert_eq!(found(&source.borrow(), "a"), "new");
    writer.join().expect("written");
}

/// A file that ends in the middle of a line must be still for longer.
#[tokio::test]
async fn a_file_that_is_cut_within_a_line_is_given_time() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  k: new-secret\n";
    fs::write(&path, text.replace("new-secret", "old")).expect("written");
    let mut source = start(
        &[dir.path()],
        Settings {
            still_open_end: Duration::from_secs(5),
            ..notified()
        },
    )
    .await;
    let (head, tail) = text.split_at(text.len() - 8);
    let writer = thread::spawn(move || {
        let mut file = fs::File::create(&path).expect("created");
        file.write_all(head.as_bytes()).expect("written");
        thread::sleep(Duration::from_millis(200));
        file.write_all(tail.as_bytes()).expect("written");
    });
    let seen = until(&mut source, "a", "new-secret").await;
    assert!(seen.iter().all(|seen| seen == "old"), "{seen:?}");
    writer.join().expect("written");
}

#[tokio::test]
async fn a_tree_that_never_rests_is_read_in_a_pass_that_only_closes() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    fs::write(&path, secret("a", "0")).expect("written");
    let settings = Settings {
        unrest: Duration::from_millis(500),
        ..notified()
    };
    let mut source = start(&[dir.path()], settings).await;
    assert!(!source.borrow_and_update().only_close);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            for count in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(path.with_extension("tmp"), secret("a", &count.to_string()))
                    .expect("written");
                fs::rename(path.with_extension("tmp"), &path).expect("renamed");
                pause();
            }
            fs::write(&path, secret("a", "end")).expect("written");
        }
    });
    let only_close =
        tokio::time::timeout(LIMIT, source.wait_for(|snapshot| snapshot.only_close)).await;
    assert_ne!(
        found(
            &only_close.expect("in time").expect("the watch goes on"),
            "a"
        ),
        "0"
    );
    stop.store(true, Ordering::Relaxed);
    until(&mut source, "a", "end").await;
    let rest = tokio::time::timeout(LIMIT, source.wait_for(|snapshot| !snapshot.only_close)).await;
    assert_eq!(
        found(&rest.expect("in time").expect("the watch goes on"), "a"),
        "end"
    );
    writer.join().expect("written");
}

#[tokio::test]
async fn the_watch_ends_when_nobody_listens() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    fs::write(&path, secret("a", "1")).expect("written");
    let roots = Roots::open(std::slice::from_ref(&path), 1000).expect("there");
    let (first, source) = oneshot::channel();
    let settings = Settings {
        poll: Duration::from_millis(50),
        ..Settings::default()
    };
    let thread = thread::spawn(move || Watch::new(roots, settings, first).run());
    drop(source.await.expect("a snapshot"));
    tokio::task::spawn_blocking(move || thread.join())
        .await
        .expect("waited")
        .expect("ended");
}
