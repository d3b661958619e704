//! Probers send requests without pause and judge every answer by the promise: refused, or handled
//! wholly as a declaration says that may be in force between the request and its answer.
//!
//! The judge knows only what was declared and when; it shares nothing with the product.

use std::{
    fmt::Write as _,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::client::{Answer, Client, Connection, exchange};

/// What a declaration says about one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The value of `x-set` that its modules add.
    pub set: String,
    /// The backend.
    pub backend: String,
    /// Who may pass, of the addresses that probe.
    pub admits: Vec<IpAddr>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// None: it refuses everybody.
    declaration: Option<Declaration>,
    from: Instant,
    until: Option<Instant>,
}

/// Everything that was declared about one route, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Entry>>>);

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// A backend answered; what it says that it saw.
    Reached {
        /// Its name.
        backend: String,
        /// Every `x-set` that it saw.
        sets: Vec<String>,
        /// Every `x-forwarded-for` that it saw.
        addresses: Vec<String>,
    },
    /// The edge answered by itself: its status, and what it said.
    Refused(u16, String),
    /// No whole answer came.
    Broken(String),
}

impl Handling {
    fn of(answer: &Answer) -> Self {
        if answer.header("x-backend").is_none() {
            return Self::Refused(answer.status, said(answer));
        }
        let seen: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        Self::of_record(&seen)
    }

    /// What a backend's record of a request says.
    fn of_record(seen: &Value) -> Self {
        let all = |wanted: &str| {
            let headers = seen["headers"].as_array().into_iter().flatten();
            let named = headers.filter(|header| header[0] == wanted);
            named
                .map(|header| header[1].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        Self::Reached {
            backend: seen["backend"].as_str().unwrap_or_default().to_owned(),
            sets: all("x-set"),
            addresses: all("x-forwarded-for"),
        }
    }
}

impl Declaration {
    fn is_what_reached(&self, backend: &str, sets: &[String], addresses: &[String]) -> bool {
        let admitted = |text: &String| {
            text.parse()
                .is_ok_and(|address: IpAddr| self.admits.contains(&address))
        };
        backend == self.backend
            && sets == [self.set.as_str()]
            && addresses.len() == 1
            && addresses.iter().all(admitted)
    }
}

impl History {
    /// From now on this may be in force. Called before it is written.
    pub fn declare(&self, declaration: Option<Declaration>) {
        self.0.lock().expect("no holder panics").push(Entry {
            declaration,
            from: Instant::now(),
            until: None,
        });
    }

    /// The newest was seen in force: nothing older may come back.
    pub fn in_force(&self) {
        let mut entries = self.0.lock().expect("no holder panics");
        let (now, newest) = (Instant::now(), entries.len().saturating_sub(1));
        for entry in entries.iter_mut().take(newest) {
            entry.until.get_or_insert(now);
        }
    }

    /// Whether a handling is refused, or as a declaration says that may have been in force
    /// between the two instants. `strict`: refused only by those who say so.
    ///
    /// # Errors
    /// With what was wrong.
    pub fn judge(
        &self,
        span: (Instant, Instant),
        source: IpAddr,
        handling: &Handling,
        strict: bool,
    ) -> Result<(), String> {
        let entries = self.0.lock().expect("no holder panics");
        let candidates: Vec<&Entry> = entries
            .iter()
            .filter(|entry| entry.from <= span.1 && entry.until.is_none_or(|until| until >= span.0))
            .collect();
        let right = candidates.iter().any(|entry| {
            let admits = entry
                .declaration
                .as_ref()
                .is_some_and(|declared| declared.admits.contains(&source));
            match (handling, &entry.declaration) {
                (
                    Handling::Reached {
                        backend,
                        sets,
                        addresses,
                    },
                    Some(declared),
                ) => {
                    addresses == &[source.to_string()]
                        && declared.is_what_reached(backend, sets, addresses)
                }
                (Handling::Reached { .. }, None) => false,
                (Handling::Refused(status, said), declared) => {
                    // In flight when the new set came, and cut by it (R12).
                    let cut = said.starts_with("ERR_PORTCULLIS_REVOKED");
                    let own = if declared.is_some() { 403 } else { 503 };
                    !strict || (!admits && (*status == own || cut))
                }
                (Handling::Broken(_), _) => !strict || !admits,
            }
        });
        if right {
            return Ok(());
        }
        let mut said = format!("from {source}: {handling:?}; might have been");
        for entry in candidates {
            let _to_a_string = write!(said, " {:?}", entry.declaration);
        }
        Err(said)
    }

    /// What is wrong with the requests that a backend saw: none may be a mix of declarations.
    #[must_use]
    pub fn mixes(&self, seen: &[Value]) -> Vec<String> {
        let entries = self.0.lock().expect("no holder panics");
        let whole = |record: &Value| {
            let Handling::Reached {
                backend,
                sets,
                addresses,
            } = Handling::of_record(record)
            else {
                return false;
            };
            entries.iter().any(|entry| {
                entry
                    .declaration
                    .as_ref()
                    .is_some_and(|declared| declared.is_what_reached(&backend, &sets, &addresses))
            })
        };
        let mixed = seen.iter().filter(|record| !whole(record));
        mixed.map(ToString::to_string).collect()
    }
}

/// Where the edge is at the moment; none while it is down.
pub type Target = Arc<Mutex<Option<Client>>>;

/// What one prober does.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The host to ask.
    pub host: String,
    /// The path to ask for.
    pub path: String,
    /// Whence.
    pub source: IpAddr,
    /// Over one kept connection, or each over its own.
    pub kept: bool,
    /// Whether a refusal needs a declaration that refuses.
    pub strict: bool,
    /// What was declared.
    pub history: History,
}

/// What the probers saw.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests that reached a backend.
    pub reached: AtomicU64,
    /// Requests that the edge refused.
    pub refused: AtomicU64,
    /// Requests without an answer.
    pub broken: AtomicU64,
    violations: Mutex<Vec<String>>,
}

/// Probers at work.
#[derive(Debug)]
pub struct Probers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What they saw so far.
    pub tally: Arc<Tally>,
}

impl Probers {
    /// Sets them to work.
    #[must_use]
    pub fn start(target: &Target, probes: Vec<Probe>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tally = Arc::new(Tally::default());
        let threads = probes
            .into_iter()
            .map(|probe| {
                let (target, stop, tally) = (target.clone(), stop.clone(), tally.clone());
                thread::spawn(move || {
                    let mut kept = None;
                    while !stop.load(Ordering::SeqCst) {
                        let client = target.lock().expect("no holder panics").clone();
                        match client {
                            Some(client) => once(&probe, &client, &mut kept, &tally),
                            None => thread::park_timeout(Duration::from_millis(5)),
                        }
                    }
                })
            })
            .collect();
        Self {
            stop,
            threads,
            tally,
        }
    }

    /// Ends the test if an answer broke the promise.
    pub fn assert_content(&self) {
        let violations = self
            .tally
            .violations
            .lock()
            .expect("no holder panics")
            .clone();
        assert!(
            violations.is_empty(),
            "{} answers broke the promise: {:#?}",
            violations.len(),
            &violations[..violations.len().min(5)]
        );
    }

    /// Stops them, and judges.
    pub fn finish(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().expect("a prober panicked");
        }
        self.assert_content();
    }
}

impl Drop for Probers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// One request, judged.
fn once(probe: &Probe, client: &Client, kept: &mut Option<Connection>, tally: &Tally) {
    let connection = match kept.take() {
        Some(connection) => Ok(connection),
        None => open(probe, client),
    };
    let (sent, answer, connection) = match connection {
        Err(error) => (Instant::now(), Err(error), None),
        Ok(mut connection) => {
            let sent = Instant::now();
            let answer = exchange(&mut connection, &probe.host, "GET", &probe.path, &[]);
            (sent, answer, Some(connection))
        }
    };
    let handling = match &answer {
        Ok(answer) => Handling::of(answer),
        Err(error) => Handling::Broken(error.to_string()),
    };
    let counter = match handling {
        Handling::Reached { .. } => &tally.reached,
        Handling::Refused(..) => &tally.refused,
        Handling::Broken(_) => &tally.broken,
    };
    counter.fetch_add(1, Ordering::SeqCst);
    let span = (sent, Instant::now());
    if let Err(wrong) = probe
        .history
        .judge(span, probe.source, &handling, probe.strict)
    {
        let mut violations = tally.violations.lock().expect("no holder panics");
        violations.push(format!("{}{} {wrong}", probe.host, probe.path));
    }
    let ends = answer.map_or(true, |answer| {
        answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    });
    *kept = connection.filter(|_| probe.kept && !ends);
}

/// What a refusal says to programs, and the beginning of what it says to people.
fn said(answer: &Answer) -> String {
    let code = answer.header("ngrok-error-code").unwrap_or("no code");
    let page: String = answer.text().chars().take(400).collect();
    format!("{code} {page}")
}

/// A connection with its handshake done, so that a request's time is its own.
fn open(probe: &Probe, client: &Client) -> std::io::Result<Connection> {
    let mut connection = client.from_address(probe.source).open(&probe.host)?;
    connection.conn.complete_io(&mut connection.sock)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(set: &str, admits: &[IpAddr]) -> Declaration {
        Declaration {
            set: set.to_owned(),
            backend: "web".to_owned(),
            admits: admits.to_vec(),
        }
    }

    fn reached(set: &str, source: IpAddr) -> Handling {
        Handling::Reached {
            backend: "web".to_owned(),
            sets: vec![set.to_owned()],
            addresses: vec![source.to_string()],
        }
    }

    /// The judge itself must see what it is there to see.
    #[test]
    fn mixes_returns_and_wrong_refusals_are_seen() {
        let one: IpAddr = "127.0.0.1".parse().expect("an address");
        let two: IpAddr = "127.0.0.2".parse().expect("an address");
        let history = History::default();
        history.declare(Some(declaration("a", &[one, two])));
        history.in_force();
        history.declare(Some(declaration("b", &[one])));
        let now = (Instant::now(), Instant::now());
        assert!(history.judge(now, one, &reached("a", one), true).is_ok());
        assert!(history.judge(now, two, &reached("a", two), true).is_ok());
        assert!(history.judge(now, two, &reached("b", two), true).is_err());
        assert!(
            history
                .judge(now, one, &Handling::Refused(403, String::new()), true)
                .is_err()
        );
        assert!(
            history
                .judge(now, one, &Handling::Refused(403, String::new()), false)
                .is_ok()
        );
        assert!(
            history
                .judge(now, two, &Handling::Refused(403, String::new()), true)
                .is_ok()
        );
        assert!(
            history
                .judge(now, two, &Handling::Refused(502, String::new()), true)
                .is_err()
        );
        history.in_force();
        let later = (
            Instant::now() + Duration::from_secs(1),
            Instant::now() + Duration::from_secs(1),
        );
        assert!(
            history
                .judge(later, one, &reached("a", one), false)
                .is_err()
        );
        assert!(history.judge(later, one, &reached("b", one), false).is_ok());
        let record = |set: &str, source: IpAddr| serde_json::json!({"backend": "web", "headers": [["x-set", set], ["x-forwarded-for", source.to_string()]]});
        assert_eq!(
            history.mixes(&[record("a", two), record("b", one)]).len(),
            0
        );
        assert_eq!(history.mixes(&[record("b", two)]).len(), 1);
    }
}
