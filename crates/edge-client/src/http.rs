//! An edge driven over HTTP.

use bytes::Bytes;
use controller::ports::{EdgeControl, EdgeError, Reading, Receipt};
use edge_api::extension::{self, CAPABILITIES_PATH, COMMANDS_PATH, STATE_PATH, State, TERM_HEADER};
use edge_state::{capabilities::Capabilities, command::Command, state::EdgeState};
use http::{HeaderMap, HeaderValue, Method};
use serde::de::DeserializeOwned;

use crate::{
    classify::{unavailable, unreadable},
    connection::{Call, ConnectOptions, Connection, TrustError},
    key::{Key, KeySource},
};

/// An edge behind its API. Calls go one at a time over one kept-alive connection.
#[derive(Debug)]
pub struct HttpEdge {
    connection: Connection,
    key: Key,
}

impl HttpEdge {
    /// An edge that is reached so, with this key. Nothing is sent yet.
    ///
    /// # Errors
    /// When it cannot be known whom to trust.
    pub fn new(options: ConnectOptions, key: KeySource) -> Result<Self, TrustError> {
        Ok(Self {
            connection: Connection::new(options)?,
            key: Key::new(key),
        })
    }

    /// Makes a call; `Ok` is the body of a success.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes, EdgeError> {
        let write = call.method != Method::GET;
        let key = self
            .key
            .get()
            .map_err(|error| EdgeError::Credentials(chain(&error)))?;
        match self.connection.call(call, &key).await {
            Ok(Ok(body)) => {
                self.key.accepted();
                Ok(body)
            }
            Ok(Err(answered)) => {
                let error = answered.classify();
                match &error {
                    EdgeError::Credentials(_) => self.key.refused(key),
                    EdgeError::Refused(_)
                    | EdgeError::Unavailable(_)
                    | EdgeError::Changed(_)
                    | EdgeError::Superseded(_) => {}
                }
                Err(error)
            }
            Err(error) => {
                let may_have_applied = write && error.may_have_arrived();
                let message = format!("{}: {error}", self.connection.address());
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
        // It was applied; what the receipt says has to be read from the state then (R6).
        let extension::Receipt { revision, now } = serde_json::from_slice(&body)
            .map_err(|_| unavailable("the edge's receipt cannot be read", true, None))?;
        Ok(Receipt { revision, now })
    }

    async fn credentials_changed(&self) {
        self.key.changed().await;
    }
}
