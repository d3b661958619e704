//! Programs that are not ours and that the tests need: installed where missing, by exact version,
//! into `.peers` in the checkout. The system is left alone, but for Debian packages where it has
//! no such program at all.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::run::{command, does, has, root, run, run_command, say, version};

/// A program of the system.
pub(crate) struct System {
    program: &'static str,
    question: &'static str,
    /// Arguments with which it does nothing, and does that well only if it has what we need.
    probe: &'static [&'static str],
    packages: &'static str,
    /// The oldest that will do.
    oldest: (u32, u32),
}

/// Runs the official client of the edge API.
pub(crate) const PYTHON: System = System {
    program: "python3",
    question: "--version",
    probe: &["-c", "import venv, ensurepip"],
    packages: "python3 python3-venv",
    oldest: (3, 9),
};

/// Builds peers. From this version on it fetches by itself the newer one that a module asks for.
pub(crate) const GO: System = System {
    program: "go",
    question: "version",
    probe: &["version"],
    packages: "golang",
    oldest: (1, 21),
};

impl System {
    /// Installs it where it is missing; name and version.
    pub(crate) fn install(&self) -> anyhow::Result<String> {
        let program = self.program;
        if !does(program, self.probe) {
            self.packages()?;
        }
        let number = version(program, &[self.question])
            .map(|line| number(&line).to_owned())
            .with_context(|| format!("{program} was installed and does not start"))?;
        let (major, minor) = self.oldest;
        if parts(&number) < Some(self.oldest) {
            bail!("{program} is {number}: please install {major}.{minor} or newer");
        }
        Ok(format!("{program} {number}"))
    }

    fn packages(&self) -> anyhow::Result<()> {
        let Self {
            program, packages, ..
        } = self;
        let by_hand = || format!("{program} is needed; as root: apt-get install {packages}");
        if !has("apt-get") {
            bail!("{program} is needed: please install it ({packages})");
        }
        say(&format!("installing {packages}"));
        run("package lists", "apt-get", &["update", "-q"]).with_context(by_hand)?;
        let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
        install.extend(packages.split(' '));
        run("install", "apt-get", &install).with_context(by_hand)
    }
}

/// The first word that looks like a version: `go version go1.26.8 linux/amd64` has `1.26.8`.
pub(crate) fn number(line: &str) -> &str {
    line.split([' ', '('])
        .map(|word| word.trim_start_matches(|c: char| c.is_ascii_alphabetic()))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or(line)
}

fn parts(number: &str) -> Option<(u32, u32)> {
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Where the tests look for what is built here.
fn bin() -> PathBuf {
    root().join(".peers/bin")
}

/// A program from crates.io, unoptimised: it is built sooner and has little to do.
pub(crate) fn from_crates(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let wanted = format!("{name}@{version}");
    let mut install = command("cargo", &["install", "--quiet", "--locked", "--debug"]);
    install
        .arg(&wanted)
        .arg("--root")
        .arg(root().join(".peers"));
    run_command("peer", &mut install)
        .with_context(|| format!("{wanted} cannot be installed; it needs the network once"))?;
    Ok(bin().join(name))
}

/// A program that is built from a Go module.
pub(crate) struct FromGo {
    name: &'static str,
    /// The folder whose `go.mod` names it by version, and whose `go.sum` has the hashes of all of it.
    folder: &'static str,
    module: &'static str,
    package: &'static str,
}

pub(crate) const ETCD: FromGo = FromGo {
    name: "etcd",
    folder: "tests/cluster/etcd",
    module: "go.etcd.io/etcd/server/v3",
    package: "go.etcd.io/etcd/server/v3",
};

pub(crate) const KUBE_APISERVER: FromGo = FromGo {
    name: "kube-apiserver",
    folder: "tests/cluster/kubernetes",
    module: "k8s.io/kubernetes",
    package: "k8s.io/kubernetes/cmd/kube-apiserver",
};

pub(crate) const H2SPEC: FromGo = FromGo {
    name: "h2spec",
    folder: "tests/peers/h2spec",
    module: "github.com/summerwind/h2spec",
    package: "github.com/summerwind/h2spec/cmd/h2spec",
};

/// Everything that `cargo test -p cli --test cluster` and its like need.
pub(crate) fn build_all() -> anyhow::Result<()> {
    GO.install()?;
    for peer in [ETCD, KUBE_APISERVER, H2SPEC] {
        say(&peer.build()?);
    }
    Ok(())
}

impl FromGo {
    /// Builds it; name and version. A second time that takes a second: Go sees that it is there.
    pub(crate) fn build(&self) -> anyhow::Result<String> {
        let Self {
            name,
            folder,
            module,
            package,
        } = self;
        let folder = root().join(folder);
        let lost = || format!("{name} cannot be built; it needs the network once");
        let list = command("go", &["list", "-m", "-f", "{{.Version}}", module])
            .current_dir(&folder)
            .output()
            .with_context(lost)?;
        if !list.status.success() {
            bail!("{}\n{}", lost(), String::from_utf8_lossy(&list.stderr));
        }
        let version = String::from_utf8_lossy(&list.stdout).trim().to_owned();
        // Kubernetes calls itself v0.0.0 unless told; the others do not listen.
        let stamp = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
        let mut build = command("go", &["build", "-ldflags", &stamp, "-o"]);
        build.arg(bin().join(name)).arg(package);
        build.current_dir(folder);
        run_command("peer", &mut build).with_context(lost)?;
        Ok(format!(
            "{name} {}",
            version.trim_start_matches('v').replace("+incompatible", "")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(number("go version go1.26.8 linux/amd64"), "1.26.8");
        assert_eq!(number("Python 3.11.2"), "3.11.2");
        assert_eq!(number("cargo-deny 0.20.2"), "0.20.2");
        assert_eq!(number("clippy 0.1.95 (abc 2026-04-14)"), "0.1.95");
        assert_eq!(parts("1.26.8"), Some((1, 26)));
        assert!(parts("1.9") < Some(GO.oldest));
        assert!(parts("devel") < Some(GO.oldest));
    }
}
