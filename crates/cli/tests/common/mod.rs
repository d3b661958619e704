//! What the end-to-end tests share: manifests in a folder, and `portcullis up` on them.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{client::plain_get, prober::Declaration, process::Portcullis};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_portcullis");

/// A folder of manifests and a data directory, both gone with the test.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for the test");
        fs::create_dir(dir.path().join("manifests")).expect("a folder for manifests");
        Self { dir }
    }

    pub(crate) fn manifests(&self) -> PathBuf {
        self.dir.path().join("manifests")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Writes a manifest as editors do: whole, then renamed into place.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let draft = self.dir.path().join("draft");
        fs::write(&draft, text).expect("it is written");
        fs::rename(draft, self.manifests().join(name)).expect("it is put in place");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.manifests().join(name)).expect("it was there");
    }

    pub(crate) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let mut arguments: Vec<String> = ["up", "-o", "json", "-f"].map(str::to_owned).to_vec();
        arguments.push(self.manifests().display().to_string());
        arguments.push("--data-dir".to_owned());
        arguments.push(self.data().display().to_string());
        for listener in ["--https", "--http", "--api", "--admin"] {
            arguments.extend([listener.to_owned(), "127.0.0.1:0".to_owned()]);
        }
        arguments.extend(["--workers", "2"].map(str::to_owned));
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    pub(crate) fn up(&self, more: &[&str]) -> Portcullis {
        Portcullis::start(Path::new(PROGRAM), &self.arguments(more))
    }

    /// An edge alone.
    pub(crate) fn edge(&self, more: &[&str]) -> Portcullis {
        let mut arguments: Vec<String> = ["edge", "-o", "json", "--workers", "2", "--data-dir"]
            .map(str::to_owned)
            .to_vec();
        arguments.push(self.data().display().to_string());
        for listener in ["--https", "--http", "--api", "--admin"] {
            arguments.extend([listener.to_owned(), "127.0.0.1:0".to_owned()]);
        }
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        Portcullis::start(Path::new(PROGRAM), &arguments)
    }

    /// A controller alone, of the edge whose API is there.
    pub(crate) fn controller(&self, api: SocketAddr, more: &[&str]) -> Portcullis {
        let mut arguments: Vec<String> = ["controller", "-o", "json", "-f"]
            .map(str::to_owned)
            .to_vec();
        arguments.push(self.manifests().display().to_string());
        arguments.extend([
            "--edge".to_owned(),
            format!("http://{api}"),
            "--api-key-file".to_owned(),
        ]);
        arguments.push(self.data().join("controller-key").display().to_string());
        arguments.extend(["--admin", "127.0.0.1:0"].map(str::to_owned));
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        Portcullis::start(Path::new(PROGRAM), &arguments)
    }

    /// The edge's whole state, as its controller may read it.
    pub(crate) fn state(&self, api: SocketAddr) -> Result<Value, String> {
        let key =
            fs::read_to_string(self.data().join("controller-key")).map_err(|e| e.to_string())?;
        let bearer = format!("Bearer {}", key.trim());
        let headers = [("authorization", bearer.as_str()), ("ngrok-version", "2")];
        let answer = plain_get(api, "localhost", "/portcullis/v1/state", &headers)
            .map_err(|error| error.to_string())?;
        serde_json::from_slice::<Value>(&answer.body)
            .map(|mut document| document["state"].take())
            .map_err(|error| format!("{error}: {}", answer.text()))
    }
}

/// `--service` for a Service of the default namespace.
pub(crate) fn service(name: &str, address: SocketAddr) -> String {
    format!("default/{name}:80={address}")
}

pub(crate) fn service_object(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n---\n"
    )
}

/// An Ingress of our class with one Prefix path.
pub(crate) fn ingress(name: &str, host: &str, path: &str, modules: &str, backend: &str) -> String {
    let annotations = if modules.is_empty() {
        String::new()
    } else {
        format!("  annotations: {{k8s.ngrok.com/modules: \"{modules}\"}}\n")
    };
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n{annotations}\
         spec:\n  ingressClassName: ngrok\n  rules:\n  - host: {host}\n    http:\n      paths:\n      \
         - path: {path}\n        pathType: Prefix\n        backend:\n          service: {{name: {backend}, port: {{number: 80}}}}\n---\n"
    )
}

pub(crate) fn policy(name: &str, allow: &[&str]) -> String {
    let rules: String = allow
        .iter()
        .map(|cidr| format!("  - {{cidr: {cidr}, action: allow}}\n"))
        .collect();
    format!(
        "apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: IPPolicy\nmetadata: {{name: {name}}}\nspec:\n  rules:\n{rules}---\n"
    )
}

/// A module set with IP policies (none: no restriction) and a request header that names the set.
pub(crate) fn module_set(name: &str, policies: &[&str]) -> String {
    module_set_saying(name, policies, name)
}

/// The same with another value of the header.
pub(crate) fn module_set_saying(name: &str, policies: &[&str], set: &str) -> String {
    let restriction = if policies.is_empty() {
        String::new()
    } else {
        format!("  ipRestriction: {{policies: [{}]}}\n", policies.join(", "))
    };
    format!(
        "apiVersion: ingress.k8s.ngrok.com/v1alpha1\nkind: NgrokModuleSet\nmetadata: {{name: {name}}}\nmodules:\n{restriction}\
         \x20 headers:\n    request: {{add: {{x-set: {set}}}, remove: [x-set]}}\n---\n"
    )
}

/// A route with all that it rests on: a module set and an IP policy of its name, so that a
/// request that a backend answers shows which declaration let it pass.
pub(crate) fn guarded(name: &str, host: &str, path: &str, declared: &Declaration) -> String {
    let admits: Vec<String> = declared
        .admits
        .iter()
        .map(|address| format!("{address}/32"))
        .collect();
    let admits: Vec<&str> = admits.iter().map(String::as_str).collect();
    policy(name, &admits)
        + &module_set_saying(name, &[name], &declared.set)
        + &ingress(name, host, path, name, &declared.backend)
}
