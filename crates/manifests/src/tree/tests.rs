//! What a tree of files says while files are broken, cut, moved and gone. Time is an argument.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

use proptest::prelude::*;
use resources::snapshot::{AnyObject, Presence};

use crate::files::Root;

use super::*;

const GRACE: Duration = Duration::from_secs(1);

/// A directory and what is known of it.
struct Bench {
    dir: tempfile::TempDir,
    tree: Tree,
    begin: Instant,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let roots = Roots::open(&[dir.path().to_owned()], 1000).expect("there");
        let tree = Tree::new(roots, Limits::default(), GRACE);
        Self {
            dir,
            tree,
            begin: Instant::now(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        // A new file each time: its stamp differs even within one tick of the clock.
        fs::write(self.path("new.tmp"), text).expect("written");
        fs::rename(self.path("new.tmp"), self.path(name)).expect("renamed");
    }

    /// The snapshot at an instant.
    fn at(&mut self, ms: u64) -> Snapshot {
        let listing = self.tree.roots().list();
        self.tree
            .update(&listing, self.begin + Duration::from_millis(ms));
        self.tree.snapshot(false)
    }
}

fn secret(name: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{k: v}}\n")
}

/// How a Secret is found.
fn found(snapshot: &Snapshot, name: &str) -> &'static str {
    match snapshot.find(
        Kind::Secret,
        &snapshot.secrets,
        &ObjectKey::new("default", name),
    ) {
        Presence::There(object) if object.value.is_ok() => "there",
        Presence::There(_) => "invalid",
        Presence::Pending => "pending",
        Presence::Missing => "missing",
    }
}

fn all_found<const N: usize>(snapshot: &Snapshot, names: [&str; N]) -> [&'static str; N] {
    names.map(|name| found(snapshot, name))
}

#[test]
fn a_path_that_holds_nothing_is_told() {
    let mut bench = Bench::new();
    let named = bench.dir.path().display().to_string();
    let empty = |files| BTreeMap::from([(named.clone(), files)]);
    assert_eq!(bench.at(0).empty_paths, empty(0));
    // Neither what does not count nor what is not used here.
    bench.write("a.yaml.txt", &secret("a"));
    bench.write(
        "b.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n",
    );
    assert_eq!(bench.at(1).empty_paths, empty(1));
    // Something wrong is something, and is told by itself.
    bench.write("c.yaml", "kind: [\n");
    assert_eq!(bench.at(2).empty_paths, BTreeMap::new());
    bench.write("c.yaml", &secret("c"));
    assert_eq!(bench.at(3).empty_paths, BTreeMap::new());
}

#[test]
fn a_file_that_vanishes_is_deleted_only_after_a_second() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    bench.write("b.yaml", &secret("b"));
    assert_eq!(
        all_found(&bench.at(0), ["a", "b", "c"]),
        ["there", "there", "missing"]
    );
    fs::remove_file(bench.path("a.yaml")).expect("removed");
    let snapshot = bench.at(100);
    assert_eq!(
        all_found(&snapshot, ["a", "b", "c"]),
        ["pending", "there", "missing"]
    );
    assert_eq!(snapshot.unreadable_files.len(), 1);
    assert_eq!(
        bench.tree.next_deadline(),
        Some(bench.begin + Duration::from_millis(1100))
    );
    assert_eq!(found(&bench.at(1099), "a"), "pending");
    let snapshot = bench.at(1100);
    assert_eq!(all_found(&snapshot, ["a", "b"]), ["missing", "there"]);
    assert_eq!(snapshot.unreadable_files, []);
    assert_eq!(bench.tree.next_deadline(), None);
}

#[test]
fn a_file_that_comes_back_in_time_was_never_gone() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    let before = bench.at(0);
    fs::rename(bench.path("a.yaml"), bench.path("a.yaml.bak")).expect("renamed");
    assert_eq!(found(&bench.at(500), "a"), "pending");
    fs::rename(bench.path("a.yaml.bak"), bench.path("a.yaml")).expect("renamed");
    assert_eq!(bench.at(600), before);
    assert_eq!(bench.at(5000), before);
}

#[test]
fn an_object_that_moves_is_neither_pending_nor_twice() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    bench.at(0);
    fs::rename(bench.path("a.yaml"), bench.path("b.yaml")).expect("renamed");
    let snapshot = bench.at(100);
    assert_eq!(found(&snapshot, "a"), "there");
    assert_eq!(
        (snapshot.unreadable_files, snapshot.duplicates),
        (vec![], BTreeMap::new())
    );
}

#[test]
fn an_emptied_or_broken_file_is_pending_and_not_empty() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &format!("{}---\n{}", secret("a"), secret("b")));
    bench.at(0);
    for text in ["", "\n", "---\n", "# gone\n", "a: [", "\u{0}"] {
        bench.write("a.yaml", text);
        let snapshot = bench.at(100);
        assert_eq!(
            all_found(&snapshot, ["a", "b", "c"]),
            ["pending", "pending", "missing"],
            "{text:?}"
        );
        assert_eq!(found(&bench.at(10_000), "a"), "pending", "{text:?}");
    }
    bench.write("a.yaml", &secret("b"));
    assert_eq!(all_found(&bench.at(200), ["a", "b"]), ["missing", "there"]);
}

#[test]
fn a_broken_file_that_was_never_read_may_hold_anything() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    bench.write("b.yaml", "kind: Ingress\nhost: b.example.com\nx: [");
    let snapshot = bench.at(0);
    assert_eq!(all_found(&snapshot, ["a", "c"]), ["there", "pending"]);
    let file = &snapshot.unreadable_files[0];
    assert_eq!((file.known.as_ref(), file.declares), (None, true));
    assert_eq!(file.hosts, BTreeSet::from(["b.example.com".to_owned()]));
    // Other hosts that cannot be told: an entry without hosts keeps every new host closed.
    bench.write(
        "b.yaml",
        "kind: Ingress\nhost: b.example.com\n---\nhost: {{ .host }}\nx: [",
    );
    let snapshot = bench.at(1);
    let hosts: Vec<_> = snapshot
        .unreadable_files
        .iter()
        .map(|file| (file.hosts.len(), file.declares))
        .collect();
    assert_eq!(hosts, [(1, true), (0, true)]);
}

#[test]
fn an_object_that_may_stand_in_a_broken_file_too_is_pending() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    bench.at(0);
    bench.write("a.yaml", "kind: [");
    bench.write("b.yaml", &secret("a"));
    assert_eq!(found(&bench.at(100), "a"), "pending");
    fs::remove_file(bench.path("a.yaml")).expect("removed");
    assert_eq!(found(&bench.at(200), "a"), "there");
}

#[test]
fn what_is_left_of_an_object_keeps_it_pending() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &format!("{}---\n{}", secret("a"), secret("b")));
    bench.at(0);
    bench.write("a.yaml", &format!("{}---\napiVersion: v1\n", secret("a")));
    let snapshot = bench.at(100);
    assert_eq!(
        all_found(&snapshot, ["a", "b", "c"]),
        ["there", "pending", "missing"]
    );
    assert_eq!(snapshot.findings.len(), 1);
    assert_eq!(found(&bench.at(200), "b"), "pending");
    bench.write("a.yaml", &secret("a"));
    assert_eq!(all_found(&bench.at(300), ["a", "b"]), ["there", "missing"]);
    // One that never was an object holds nothing back.
    bench.write("values.yaml", "a: 1\n");
    assert_eq!(all_found(&bench.at(400), ["a", "b"]), ["there", "missing"]);
}

#[test]
fn what_cannot_be_looked_at_is_pending() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    fs::create_dir(bench.path("sub")).expect("created");
    bench.write("sub/b.yaml", &secret("b"));
    bench.at(0);
    // A link to itself is an error for every user; permissions are none for some.
    fs::remove_dir_all(bench.path("sub")).expect("removed");
    symlink("sub", bench.path("sub")).expect("linked");
    let snapshot = bench.at(100);
    assert_eq!(
        all_found(&snapshot, ["a", "b", "c"]),
        ["there", "pending", "missing"]
    );
    assert_eq!(found(&bench.at(10_000), "b"), "pending");
    fs::remove_file(bench.path("sub")).expect("removed");
    assert_eq!(found(&bench.at(10_000), "b"), "pending");
    assert_eq!(found(&bench.at(11_000), "b"), "missing");
    // One that could never be looked into may hold anything.
    symlink("other", bench.path("other")).expect("linked");
    assert_eq!(
        all_found(&bench.at(12_000), ["a", "c"]),
        ["there", "pending"]
    );
}

#[test]
fn what_takes_the_place_of_a_file_does_not_delete_it() {
    for case in 0..4 {
        let mut bench = Bench::new();
        bench.write("a.yaml", &secret("a"));
        bench.write("b.yaml", &secret("b"));
        assert_eq!(found(&bench.at(0), "a"), "there");
        let path = bench.path("a.yaml");
        fs::remove_file(&path).expect("removed");
        match case {
            0 => drop(UnixListener::bind(&path).expect("bound")),
            1 => symlink("nothing", &path).expect("linked"),
            2 => symlink(".", &path).expect("linked"),
            _ => {
                fs::create_dir(&path).expect("created");
                bench.write("a.yaml/c.yaml", &secret("c"));
            }
        }
        for ms in [100, 5000] {
            let snapshot = bench.at(ms);
            let expected = ["pending", "there", "missing"];
            assert_eq!(all_found(&snapshot, ["a", "b", "d"]), expected, "{case}");
            assert_eq!(snapshot.unreadable_files.len(), 1, "{case}");
        }
        if case == 3 {
            assert_eq!(found(&bench.at(5000), "c"), "there");
            fs::remove_dir_all(&path).expect("removed");
        } else {
            fs::remove_file(&path).expect("removed");
        }
        assert_eq!(found(&bench.at(6000), "a"), "pending", "{case}");
        let snapshot = bench.at(7000);
        assert_eq!(all_found(&snapshot, ["a", "b"]), ["missing", "there"]);
        assert_eq!(snapshot.unreadable_files, []);
    }
}

#[test]
fn a_link_to_nothing_may_hold_anything_at_first() {
    let mut bench = Bench::new();
    symlink("nothing", bench.path("a.yaml")).expect("linked");
    let snapshot = bench.at(0);
    assert_eq!(found(&snapshot, "a"), "pending");
    assert_eq!(snapshot.unreadable_files.len(), 1);
}

#[test]
fn a_named_directory_that_is_not_there_is_not_deleted() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("created");
    let roots = Roots::open(std::slice::from_ref(&root), 1000).expect("there");
    let tree = Tree::new(roots, Limits::default(), GRACE);
    let begin = Instant::now();
    let mut bench = Bench { dir, tree, begin };
    bench.write("root/a.yaml", &secret("a"));
    assert_eq!(found(&bench.at(0), "a"), "there");
    fs::rename(&root, bench.path("away")).expect("renamed");
    for ms in [100, 5000] {
        let snapshot = bench.at(ms);
        assert_eq!(all_found(&snapshot, ["a", "b"]), ["pending", "missing"]);
        assert_eq!(snapshot.unreadable_files.len(), 1);
    }
    // An empty one in its place, as where a volume is not mounted, says nothing either.
    fs::create_dir(&root).expect("created");
    for ms in [6000, 9000] {
        assert_eq!(found(&bench.at(ms), "a"), "pending");
    }
    fs::remove_dir(&root).expect("removed");
    fs::rename(bench.path("away"), &root).expect("renamed");
    let snapshot = bench.at(10_000);
    assert_eq!(found(&snapshot, "a"), "there");
    assert_eq!(snapshot.unreadable_files, []);
    // What is deleted inside it is deleted.
    fs::remove_file(root.join("a.yaml")).expect("removed");
    assert_eq!(found(&bench.at(11_000), "a"), "pending");
    assert_eq!(found(&bench.at(12_000), "a"), "missing");
}

#[test]
fn an_object_in_two_files_is_used_from_neither() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    bench.write("b.yaml", &secret("a").replace("k: v", "k: w"));
    let snapshot = bench.at(0);
    assert_eq!(found(&snapshot, "a"), "invalid");
    let places: Vec<_> = snapshot
        .duplicates
        .values()
        .next()
        .expect("one")
        .iter()
        .map(|place| &*place.file)
        .collect();
    assert_eq!(
        places,
        [bench.path("a.yaml"), bench.path("b.yaml")].map(|path| path.display().to_string())
    );
    fs::remove_file(bench.path("a.yaml")).expect("removed");
    assert_eq!(found(&bench.at(1), "a"), "there");
}

#[test]
fn age_is_the_order_of_first_sight() {
    let mut bench = Bench::new();
    bench.write("b.yaml", &format!("{}---\n{}", secret("b1"), secret("b2")));
    bench.write("c.yaml", &secret("c"));
    bench.at(0);
    bench.write("a.yaml", &secret("a"));
    let snapshot = bench.at(1);
    let mut ages: Vec<_> = snapshot
        .secrets
        .values()
        .map(|object| (object.age, object.key.name.as_str()))
        .collect();
    ages.sort_unstable();
    assert_eq!(
        ages.iter().map(|(_, name)| *name).collect::<Vec<_>>(),
        ["b1", "b2", "c", "a"]
    );
}

#[test]
fn unchanged_bytes_change_nothing() {
    let mut bench = Bench::new();
    bench.write("a.yaml", &secret("a"));
    let before = bench.at(0);
    let print = bench.tree.fingerprint();
    bench.write("a.yaml", &secret("a"));
    assert_eq!(bench.at(1), before);
    assert!(bench.tree.fingerprint() == print);
}

#[test]
fn standard_input_is_a_file_that_never_changes() {
    let root = |text: String| Root::Once {
        name: "-".into(),
        bytes: text.into_bytes().into(),
    };
    let roots = Roots {
        roots: vec![root(secret("a"))],
    };
    let mut tree = Tree::new(roots, Limits::default(), GRACE);
    let listing = tree.roots().list();
    tree.update(&listing, Instant::now());
    let snapshot = tree.snapshot(false);
    assert_eq!(found(&snapshot, "a"), "there");
    let object = &snapshot.secrets[&ObjectKey::new("default", "a")];
    assert_eq!(
        &*object
            .origin
            .place(&FieldPath::root())
            .expect("a place")
            .file,
        "-"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    /// A manifest with a piece missing, a piece twice and a byte changed.
    #[test]
    fn no_damaged_manifest_does_harm(cut in 0..SAMPLE.len(), length in 0..200_usize, at in 0..SAMPLE.len(), byte: u8) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        let end = (cut + length).min(bytes.len());
        let piece: Vec<u8> = bytes.drain(cut..end).collect();
        let at = at.min(bytes.len());
        bytes.splice(at..at, piece.iter().chain(&piece).copied());
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        crate::fuzz::manifest(&bytes);
    }
}

const SAMPLE: &str = include_str!("sample.yaml");

/// A file cut at every byte. It is unreadable (pending), or its last line has no end (it must
/// have been still for longer), or the cut is at the end of a line. Only the last may look whole
/// and be another set: the test shows how many of these there are, and that stillness is all that
/// stands against them.
#[test]
fn a_file_cut_anywhere_is_pending_or_cut_at_the_end_of_a_line() {
    let limits = Limits::default();
    let name: Arc<str> = "a.yaml".into();
    let whole = document::read(&name, SAMPLE.as_bytes(), 0, &limits);
    assert!(whole.objects.iter().all(decodes), "the sample is valid");
    let mut looks_whole = Vec::new();
    for cut in 0..SAMPLE.len() {
        let bytes = &SAMPLE.as_bytes()[..cut];
        let contents = document::read(&name, bytes, 0, &limits);
        if !contents.readable {
            continue;
        }
        assert!(cut > 0, "an empty file is unreadable");
        let differs = contents
            .objects
            .iter()
            .any(|object| decodes(object) && !whole.objects.contains(object));
        let lacks = contents.objects.len() < whole.objects.len() && !contents.has_remains;
        if differs || lacks {
            let ends_open = !matches!(bytes.last(), Some(b'\n' | b'}' | b']'));
            let line_ends = SAMPLE.as_bytes()[cut] == b'\n' || bytes.last() == Some(&b'\n');
            assert!(ends_open || line_ends, "cut at {cut}");
            if !ends_open {
                looks_whole.push(cut);
            }
        }
    }
    let lines = SAMPLE.lines().count();
    assert!(
        !looks_whole.is_empty() && looks_whole.len() < 2 * lines,
        "{} of {lines} lines",
        looks_whole.len()
    );
}

fn decodes(object: &AnyObject) -> bool {
    match object {
        AnyObject::NgrokModuleSet(object) => object.value.is_ok(),
        AnyObject::IpPolicy(object) => object.value.is_ok(),
        AnyObject::Ingress(object) => object.value.is_ok(),
        AnyObject::Service(object) => object.value.is_ok(),
        AnyObject::Secret(object) => object.value.is_ok(),
        _ => false,
    }
}
