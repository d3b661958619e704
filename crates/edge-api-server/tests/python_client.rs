//! The official Python client of the edge API against a served edge.
//!
//! The client is a peer that nobody here wrote: it is installed by name and version into a cache
//! folder of the workspace, and what is installed is said while it happens.

#[expect(dead_code, reason = "the other tests need more of it")]
mod common;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use common::{Edge, key};
use edge_state::state::Role;

/// Longest time for an installation, and for the test program: the client itself waits for ever.
const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn the_official_python_client_drives_everything_that_is_enforced() {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/peers/python"
    ));
    let python = installed(folder);
    let edge = Edge::start();
    let certificate =
        rcgen::generate_simple_self_signed(["app.example.com".to_owned()]).expect("generated");
    let mut command = Command::new(python);
    command
        .arg(folder.join("edge_api.py"))
        .arg(format!("http://{}", edge.address))
        .env("PORTCULLIS_API_KEY", key(Role::Write))
        .env("TEST_CERTIFICATE_PEM", certificate.cert.pem())
        .env(
            "TEST_PRIVATE_KEY_PEM",
            certificate.signing_key.serialize_pem(),
        )
        .env("NO_PROXY", "127.0.0.1")
        .env("NETRC", "/dev/null")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    println!("{}", run(&mut command, "the test program"));
}

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests is told what is installed"
)]
fn say(line: &str) {
    eprintln!("{line}");
}

/// The interpreter of an environment in which the client is installed.
fn installed(folder: &Path) -> PathBuf {
    let wanted = folder.join("requirements.txt");
    let requirements = fs::read_to_string(&wanted).expect("the list of what to install");
    let peers = folder.join("../../../.peers");
    fs::create_dir_all(&peers).expect("a cache folder");
    // Two test runs must not install into one folder at the same time.
    let lock = File::create(peers.join("python.lock")).expect("a lock file");
    lock.lock().expect("the lock");
    let environment = peers.join("python");
    let python = environment.join("bin/python");
    let done = environment.join("installed.txt");
    if fs::read_to_string(&done).is_ok_and(|there| there == requirements) && python.exists() {
        return python;
    }
    let what = "python3 with venv is needed for the official client of the edge API; install it";
    if environment.exists() {
        fs::remove_dir_all(&environment).expect("an old environment removed");
    }
    say(&format!(
        "installing the official Python client of the edge API into {}",
        environment.display()
    ));
    for line in requirements.lines().filter(|line| !line.starts_with('#')) {
        say(&format!("  {line}"));
    }
    run(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
        what,
    );
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
    ];
    run(Command::new(&python).args(pip).arg(&wanted), "pip install");
    fs::write(&done, requirements).expect("noted");
    python
}

/// Runs to the end, with a limit, and gives what was said.
fn run(command: &mut Command, what: &str) -> String {
    let output = tempfile::NamedTempFile::new().expect("a file");
    let said = || fs::read_to_string(output.path()).expect("text");
    // One file for both streams: appended to, so that neither overwrites the other.
    let both = fs::OpenOptions::new()
        .append(true)
        .open(output.path())
        .expect("the file again");
    let error = both.try_clone().expect("the file again");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(both)
        .stderr(error)
        .spawn()
        .expect(what);
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            assert!(status.success(), "{what} failed, {status}:\n{}", said());
            return said();
        }
        let late = begun.elapsed() > LIMIT;
        if late {
            child.kill().expect("killed");
        }
        assert!(
            !late,
            "{what} did not end within {} s: {}",
            LIMIT.as_secs(),
            said()
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
