//! The program as its users run it: a process with a data directory, asked through its listeners.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use model::status::{RouteState, RouteStatus, Status};
use serde_json::Value;

use crate::{
    client::{Client, plain_get},
    wait::until,
};

/// How long a state may take to come about on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running `portcullis`.
#[derive(Debug)]
pub struct Portcullis {
    child: Child,
    listening: Value,
    lines: Arc<Mutex<Vec<Value>>>,
    log: Arc<Mutex<String>>,
}

impl Portcullis {
    /// Starts the program and waits until it listens. `arguments` must ask for `-o json`.
    #[must_use]
    pub fn start(program: &Path, arguments: &[String]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let log: Arc<Mutex<String>> = Arc::default();
        let (seen, logged) = (lines.clone(), log.clone());
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                seen.lock().expect("no reader panics").push(value);
            }
        });
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = logged.lock().expect("no reader panics");
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut started = Self {
            child,
            listening: Value::Null,
            lines,
            log,
        };
        started.listening = until("the program listens", PATIENCE, || {
            let found = started
                .lines
                .lock()
                .expect("no reader panics")
                .iter()
                .find_map(|line| line.get("listening").cloned());
            found.ok_or_else(|| started.log())
        });
        started
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().expect("no reader panics").clone()
    }

    /// What it printed so far, without the line about its listeners.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let lines = self.lines.lock().expect("no reader panics");
        lines
            .iter()
            .filter(|line| line.get("listening").is_none())
            .cloned()
            .collect()
    }

    /// Where one of its listeners is: `https`, `http`, `api`, `admin`.
    #[must_use]
    pub fn address(&self, listener: &str) -> SocketAddr {
        self.listening[listener]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| panic!("no listener {listener} in {}", self.listening))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client that trusts its local authority.
    #[must_use]
    pub fn client(&self) -> Client {
        let path = self.listening["ca"]
            .as_str()
            .expect("it names its authority");
        let pem = std::fs::read(PathBuf::from(path)).expect("the authority can be read");
        Client::new(self.address("https"), &pem)
    }

    /// The status, or what stands in the way.
    ///
    /// # Errors
    /// When the admin listener does not answer with one.
    pub fn try_status(&self) -> Result<Status, String> {
        let answer = plain_get(self.address("admin"), "localhost", "/status", &[])
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer.body)
            .map_err(|error| format!("{}: {error}: {}", answer.status, answer.text()))
    }

    /// Waits until a route is in a state, and returns it.
    #[must_use]
    pub fn wait_route(&self, host: &str, path: &str, state: RouteState) -> RouteStatus {
        self.wait_for(
            &format!("{host}{path} is {}", state.name()),
            host,
            path,
            |route| route.state == state,
        )
    }

    /// Waits until a route is as asked, and returns it.
    #[must_use]
    pub fn wait_for(
        &self,
        what: &str,
        host: &str,
        path: &str,
        content: impl Fn(&RouteStatus) -> bool,
    ) -> RouteStatus {
        until(what, PATIENCE, || {
            let status = self.try_status()?;
            let route = status
                .routes
                .iter()
                .find(|r| r.host == host && r.path == path)
                .cloned();
            match route {
                Some(route) if content(&route) => Ok(route),
                other => Err(format!(
                    "{other:#?}\n{:#?}\n{}",
                    status.diagnostics,
                    self.log()
                )),
            }
        })
    }

    /// A metric's value, summed over labels.
    #[must_use]
    pub fn metric(&self, name: &str) -> u64 {
        let answer = plain_get(self.address("admin"), "localhost", "/metrics", &[])
            .expect("the admin listener answers");
        answer
            .text()
            .lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with([' ', '{']))
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Asks it to stop, as a service manager does, and waits until it has.
    pub fn stop(&mut self) -> std::process::ExitStatus {
        let pid = self.child.id().to_string();
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill runs");
        until("it stops", PATIENCE, || match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            other => Err(format!("{other:?}")),
        })
    }
}

impl Drop for Portcullis {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
