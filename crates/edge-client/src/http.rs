//! An edge driven over HTTP.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use controller::ports::{EdgeControl, EdgeError, Reading, Receipt};
use edge_api::extension::{self, CAPABILITIES_PATH, COMMANDS_PATH, STATE_PATH, State, TERM_HEADER};
use edge_state::{capabilities::Capabilities, command::Command, state::EdgeState};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::watch;

use crate::{
    classify::{unavailable, unreadable},
    connection::{Call, ConnectOptions, Connection, TrustError},
    key::{Key, KeySource},
};

/// How often a controller at rest shows that it is still there: the edge lets no other take over
/// while the connection is open (R19), and takes one that is silent for long to have gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// An edge behind its API. Calls go one at a time over one kept-alive connection. Clones are the
/// same edge.
#[derive(Clone, Debug)]
pub struct HttpEdge(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connection: Connection,
    key: Key,
    /// Whether signs of life are being given: from the first command on.
    alive: AtomicBool,
    /// The highest revision that a sign of life has seen.
    seen: watch::Sender<u64>,
}

/// What a sign of life reads.
#[derive(Deserialize)]
struct Life {
    #[serde(default)]
    revision: u64,
}

impl HttpEdge {
    /// An edge that is reached so, with this key. Nothing is sent yet.
    ///
    /// # Errors
    /// When it cannot be known whom to trust.
    pub fn new(options: ConnectOptions, key: KeySource) -> Result<Self, TrustError> {
        Ok(Self(Arc::new(Inner {
            connection: Connection::new(options)?,
            key: Key::new(key),
            alive: AtomicBool::new(false),
            seen: watch::Sender::new(0),
        })))
    }

    /// Makes a call; `Ok` is the body of a success.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes, EdgeError> {
        let write = call.method != Method::GET;
        let key = self
            .0
            .key
            .get()
            .map_err(|error| EdgeError::Credentials(chain(&error)))?;
        match self.0.connection.call(call, &key).await {
            Ok(Ok(body)) => {
                self.0.key.accepted();
                Ok(body)
            }
            Ok(Err(answered)) => {
                let error = answered.classify();
                match &error {
                    EdgeError::Credentials(_) => self.0.key.refused(key),
                    EdgeError::Refused(_) | EdgeError::Changed(_) | EdgeError::Superseded(_) => {
                        self.0.key.accepted();
                    }
                    EdgeError::Unavailable(_) => {}
                }
                Err(error)
            }
            Err(error) => {
                let may_have_applied = write && error.may_have_arrived();
                let message = format!("{}: {error}", self.0.connection.address());
                Err(unavailable(message, may_have_applied, None))
            }
        }
    }

    /// Reads a document.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        target: &str,
        what: &str,
    ) -> Result<T, EdgeError> {
        let call = Call {
            method: Method::GET,
            target: target.to_owned(),
            headers: HeaderMap::new(),
            body: None,
        };
        let body = self.call(call).await?;
        serde_json::from_slice(&body).map_err(|_| unreadable(what))
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {}", chain(source)),
    }
}

/// Until the edge is not needed any more, reads something small over a connection that is idle.
/// Where there is none it makes none: a seat at the edge is regained by the next command.
async fn give_signs_of_life(edge: Weak<Inner>) {
    loop {
        tokio::time::sleep(SIGN_OF_LIFE).await;
        let Some(inner) = edge.upgrade() else { return };
        if inner.connection.is_idle() {
            let edge = HttpEdge(inner);
            let read = edge.get::<Life>(CAPABILITIES_PATH, "a sign of life");
            // With a limit of its own, so that the next command does not wait behind it for long.
            // That it failed is noticed by the next call.
            if let Ok(Ok(life)) = tokio::time::timeout(SIGN_OF_LIFE, read).await {
                edge.0.seen.send_if_modified(|seen| {
                    let newer = life.revision > *seen;
                    *seen = life.revision.max(*seen);
                    newer
                });
            }
        }
    }
}

impl EdgeControl for HttpEdge {
    async fn capabilities(&self) -> Result<Capabilities, EdgeError> {
        let document: extension::Capabilities<Capabilities> = self
            .get(CAPABILITIES_PATH, "the edge's capabilities")
            .await?;
        Ok(document.edge)
    }

    async fn read(&self) -> Result<Reading, EdgeError> {
        let State { state, now } = self
            .get::<State<EdgeState>>(STATE_PATH, "the edge's state")
            .await?;
        Ok(Reading { state, now })
    }

    async fn apply(&self, term: u64, command: Command) -> Result<Receipt, EdgeError> {
        let body = serde_json::to_vec(&command).map_err(|error| {
            unavailable(format!("a command cannot be written: {error}"), false, None)
        })?;
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static(TERM_HEADER),
            HeaderValue::from(term),
        )]);
        let target = COMMANDS_PATH.to_owned();
        let call = Call {
            method: Method::POST,
            target,
            headers,
            body: Some(body.into()),
        };
        let body = self.call(call).await?;
        if !self.0.alive.swap(true, Ordering::Relaxed) {
            tokio::spawn(give_signs_of_life(Arc::downgrade(&self.0)));
        }
        // It was applied; what the receipt says has to be read from the state then (R6).
        let extension::Receipt { revision, now } = serde_json::from_slice(&body)
            .map_err(|_| unavailable("the edge's receipt cannot be read", true, None))?;
        Ok(Receipt { revision, now })
    }

    async fn credentials_changed(&self) {
        self.0.key.changed().await;
    }

    async fn changed(&self, revision: u64) {
        let mut seen = self.0.seen.subscribe();
        // The sender lives as long as `self`.
        let _newer = seen.wait_for(|seen| *seen > revision).await;
    }
}
