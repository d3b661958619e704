//! A full disk under the data directory: nothing opens and nothing becomes laxer, what must close
//! closes and stays closed over a kill, and with room again everything goes on (R10).
//!
//! The disk is a small file system in memory, which only root can mount; without that right this
//! test says so, and the store's own tests with a disk that fails stand for it.

mod common;

use std::{
    fs::{self, File},
    io::Write as _,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use common::{Place, guarded, ingress, module_set_saying, policy, service, service_object};
use model::status::RouteState;
use testkit::{backend::Backend, prober::Declaration, process::Portcullis, wait::until};

const HOST: &str = "web.example.com";
const NEW: &str = "new.example.com";
const LIMIT: Duration = Duration::from_secs(30);

/// A small file system, unmounted with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).expect("a folder to mount on");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m,mode=0700", "none"])
            .arg(at)
            .output();
        mount
            .is_ok_and(|mount| mount.status.success())
            .then(|| Self(at.to_owned()))
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).expect("there is room for a name");
        for size in [64 << 10, 4 << 10, 1] {
            while filler.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that is just ending may hold a file yet.
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn declaration(set: &str, admits: &[&str]) -> Declaration {
    Declaration {
        set: set.to_owned(),
        backend: "web".to_owned(),
        admits: admits.iter().map(|text| address(text)).collect(),
    }
}

fn status(portcullis: &Portcullis, source: &str, host: &str, path: &str) -> Option<u16> {
    let client = portcullis.client().from_address(address(source));
    client.get(host, path).ok().map(|answer| answer.status)
}

/// A host whose state is too large for whatever room is left inside the database's file.
fn large_host() -> String {
    let said = "x".repeat(3000);
    let mut text =
        module_set_saying("large", &["large"], &said) + &policy("large", &["127.0.0.1/32"]);
    for number in 0..150 {
        text += &ingress(
            &format!("new-{number}"),
            NEW,
            &format!("/{number}"),
            "large",
            "web",
        );
    }
    text
}

#[test]
fn on_a_full_disk_nothing_opens_and_what_must_close_closes() {
    let web = Backend::start("web");
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place.data()) else {
        let mut said = std::io::stderr();
        let text = "only root can mount a small disk: the store's tests stand for this one";
        writeln!(said, "{text}").expect("standard error takes a line");
        return;
    };
    let base =
        service_object("web") + &guarded("web", HOST, "/", &declaration("web", &["127.0.0.1"]));
    let closing = guarded(
        "closing",
        HOST,
        "/closing",
        &declaration("closing", &["127.0.0.1"]),
    );
    place.write("base.yaml", &base);
    place.write("closing.yaml", &closing);
    let service = service("web", web.address);
    let arguments = [
        "--service",
        service.as_str(),
        "--tombstone",
        "1h",
        "--on-invalid",
        "close",
    ];
    let mut portcullis = place.up(&arguments);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let _open = portcullis.wait_route(HOST, "/closing", RouteState::Open);
    disk.fill();
    // A new host, too large to be saved; after the failure nothing else opens either.
    place.write("new.yaml", &large_host());
    until("it is told that nothing can be saved", LIMIT, || {
        let admin = portcullis.address("admin");
        match testkit::client::plain_get(admin, "localhost", "/readyz", &[]) {
            Ok(answer) if answer.status == 503 => Ok(()),
            other => Err(format!("{other:?} {}", portcullis.log())),
        }
    });
    let wide = declaration("wide", &["127.0.0.1", "127.0.0.2"]);
    place.write(
        "base.yaml",
        &(service_object("web") + &guarded("web", HOST, "/", &wide)),
    );
    // What must close closes, saved or not.
    place.remove("closing.yaml");
    until("it closes", LIMIT, || {
        match status(&portcullis, "127.0.0.1", HOST, "/closing") {
            Some(503) => Ok(()),
            other => Err(format!("{other:?} {}", portcullis.log())),
        }
    });
    let nothing_opened = |portcullis: &Portcullis| {
        assert_ne!(
            status(portcullis, "127.0.0.1", NEW, "/7"),
            Some(200),
            "nothing opens"
        );
        assert_eq!(
            status(portcullis, "127.0.0.2", HOST, "/"),
            Some(403),
            "nothing is laxer"
        );
        assert_eq!(
            status(portcullis, "127.0.0.1", HOST, "/closing"),
            Some(503),
            "it stays closed"
        );
    };
    nothing_opened(&portcullis);
    assert_eq!(
        status(&portcullis, "127.0.0.1", HOST, "/"),
        Some(200),
        "the rest is served"
    );
    // A kill, and a start on a disk that is still full.
    portcullis.kill();
    portcullis = place.up(&arguments);
    nothing_opened(&portcullis);
    // Room again: everything goes on by itself.
    disk.make_room();
    for (source, host, path) in [("127.0.0.1", NEW, "/7"), ("127.0.0.2", HOST, "/")] {
        until("it opens with room on the disk", LIMIT, || {
            match status(&portcullis, source, host, path) {
                Some(200) => Ok(()),
                other => Err(format!("{other:?} {}", portcullis.log())),
            }
        });
    }
    assert_eq!(
        status(&portcullis, "127.0.0.1", HOST, "/closing"),
        Some(503)
    );
    portcullis.kill();
}
