//! The watch over real directories. What depends on notifications waits for states, with a limit;
//! what depends on how fast somebody writes is stepped through on a clock of the test's own.

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

/// A watch on a clock of the test's own, woken by hand. Writers rename files into place or change
/// their size: two writes may fall into one tick of the file system's clock.
struct Driven {
    watch: Watch,
    source: ObjectSource,
    now: Instant,
}

/// Less than a tree must be still.
const SHORT: Duration = Duration::from_millis(30);

impl Driven {
    fn start(dir: &Path) -> Self {
        let settings = Settings {
            notifications: false,
            ..Settings::default()
        };
        let roots = Roots::open(&[dir.to_path_buf()], settings.limits.file_bytes).expect("there");
        let (first, mut source) = oneshot::channel();
        let mut now = Instant::now();
        let mut watch = Watch::new(roots, settings, first, now);
        now += settings.still;
        watch.step(now);
        let source = source.try_recv().expect("the first snapshot");
        Self { watch, source, now }
    }

    /// Time passes, and the watch wakes. Whether there is a new snapshot.
    fn after(&mut self, span: Duration) -> bool {
        self.now += span;
        self.watch.step(self.now);
        let is_new = self.source.has_changed().expect("the watch goes on");
        self.source.mark_unchanged();
        is_new
    }

    fn found(&self, name: &str) -> String {
        found(&self.source.borrow(), name)
    }
}

/// Puts a file in place.
fn put(path: &Path, text: &str) {
    fs::write(path.with_extension("tmp"), text).expect("written");
    fs::rename(path.with_extension("tmp"), path).expect("renamed");
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

#[test]
fn the_same_bytes_again_make_no_snapshot() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    put(&path, &secret("a", "1"));
    let mut driven = Driven::start(dir.path());
    for pause in [SHORT, SHORT, driven.watch.settings.still] {
        put(&path, &secret("a", "1"));
        assert!(!driven.after(SHORT));
        assert!(!driven.after(pause));
    }
    assert!(!driven.after(driven.watch.settings.still));
    put(&path, &secret("a", "2"));
    assert!(!driven.after(SHORT));
    assert!(driven.after(driven.watch.settings.still));
    assert_eq!(driven.found("a"), "2");
}

/// Every prefix of a file at the end of a line stands there for a while that is shorter than the
/// tree must be still: none of them is ever delivered.
#[test]
fn a_file_that_is_written_in_pieces_is_read_once() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    let text: String = ["a", "b", "c", "d"]
        .map(|name| secret(name, "new"))
        .join("---\n");
    put(&path, &text.replace("new", "old"));
    let mut driven = Driven::start(dir.path());
    let mut file = fs::File::create(&path).expect("created");
    for line in text.split_inclusive('\n') {
        assert!(!driven.after(SHORT));
        file.write_all(line.as_bytes()).expect("written");
    }
    assert!(!driven.after(SHORT));
    assert_eq!(driven.found("a"), "old");
    assert!(driven.after(driven.watch.settings.still));
    assert_eq!(
        (driven.found("a"), driven.found("d")),
        ("new".into(), "new".into())
    );
}

/// A file that ends in the middle of a line must be still for longer.
#[test]
fn a_file_that_is_cut_within_a_line_is_given_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  k: new-secret\n";
    put(&path, &text.replace("new-secret", "old"));
    let mut driven = Driven::start(dir.path());
    fs::write(&path, &text[..text.len() - 8]).expect("written");
    let Settings {
        still,
        still_open_end,
        ..
    } = driven.watch.settings;
    assert!(!driven.after(SHORT));
    assert!(!driven.after(still));
    assert!(!driven.after(still_open_end - still - SHORT));
    fs::write(&path, text).expect("written");
    assert!(!driven.after(SHORT));
    assert_eq!(driven.found("a"), "old");
    assert!(driven.after(still));
    assert_eq!(driven.found("a"), "new-secret");
}

#[test]
fn a_tree_that_never_rests_is_read_in_a_pass_that_only_closes() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a.yaml");
    put(&path, &secret("a", "0"));
    let mut driven = Driven::start(dir.path());
    assert!(!driven.source.borrow().only_close);
    let begun = driven.now;
    let mut count = 0;
    loop {
        count += 1;
        put(&path, &secret("a", &count.to_string()));
        if driven.after(SHORT) {
            break;
        }
        assert_eq!(driven.found("a"), "0");
    }
    assert!(driven.source.borrow().only_close);
    assert_eq!(driven.found("a"), count.to_string());
    assert!(driven.now - begun >= driven.watch.settings.unrest);
    put(&path, &secret("a", "end"));
    assert!(!driven.after(SHORT));
    assert!(driven.after(driven.watch.settings.still));
    assert!(!driven.source.borrow().only_close);
    assert_eq!(driven.found("a"), "end");
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
    let thread = thread::spawn(move || Watch::new(roots, settings, first, Instant::now()).run());
    drop(source.await.expect("a snapshot"));
    tokio::task::spawn_blocking(move || thread.join())
        .await
        .expect("waited")
        .expect("ended");
}
