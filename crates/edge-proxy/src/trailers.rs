//! Fields behind a body, both ways (R16).
//!
//! They pass the rules that headers pass, and one more: nothing that decides how a message is
//! read, or whether it is believed, comes after it. Their size is bounded where they are read: a
//! client's by `codec::chunks` and by the HTTP/2 header bound, a backend's by its parser (16 KiB,
//! 100 fields).

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use routing::{
    headers::{Nominations, RequestFilter, ResponseFilter},
    host::Version,
    table::CompiledSet,
};

use crate::options::Defences;

/// Whether a client reads fields behind a body (RFC 9110 section 6.5.1). HTTP/2 has a place for
/// them in every message; an HTTP/1 client must say so.
pub(crate) fn are_taken(version: Version, headers: &HeaderMap) -> bool {
    version == Version::Http2 || are_asked_for(headers)
}

/// Whether `TE` asks for them.
pub(crate) fn are_asked_for(headers: &HeaderMap) -> bool {
    let mut codings = headers
        .get_all(header::TE)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// The names that a message announces and that may come behind it. On HTTP/1 no other goes on.
fn announced(headers: &HeaderMap, keeps: impl Fn(&[u8]) -> bool) -> Vec<HeaderName> {
    headers
        .get_all(header::TRAILER)
        .into_iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| keeps(name.as_str().as_bytes()))
        .collect()
}

/// The announcement of these names, if there are any.
fn announcement(names: &[HeaderName]) -> Option<HeaderValue> {
    let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
    if names.is_empty() {
        return None;
    }
    HeaderValue::try_from(names.join(", ")).ok()
}

fn retain(trailers: &mut HeaderMap, keeps: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = trailers
        .keys()
        .filter(|name| !keeps(name))
        .cloned()
        .collect();
    for name in gone {
        trailers.remove(name);
    }
}

/// Those of a request that go on: the ones that its head announced, since a backend speaks
/// HTTP/1.
#[derive(Debug, Default)]
pub(crate) struct RequestTrailers {
    names: Vec<HeaderName>,
}

impl RequestTrailers {
    /// Reads what the client announces.
    pub(crate) fn announced(
        client: &HeaderMap,
        filter: &RequestFilter<'_>,
        defences: &Defences,
    ) -> Self {
        let keeps = |name: &[u8]| filter.keeps_trailer(name) || !defences.trailers;
        Self {
            names: announced(client, keeps),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What the backend is told to expect.
    pub(crate) fn announcement(&self) -> Option<HeaderValue> {
        announcement(&self.names)
    }

    /// Takes away what does not go on.
    pub(crate) fn filter(&self, trailers: &mut HeaderMap) {
        retain(trailers, |name| self.names.contains(name));
    }
}

/// Those of an answer that go on.
#[derive(Debug)]
pub(crate) struct AnswerTrailers {
    set: Arc<CompiledSet>,
    /// What the backend's `Connection` says.
    connection: Vec<HeaderValue>,
}

impl AnswerTrailers {
    /// The rules for an answer with these headers.
    pub(crate) fn of(set: &Arc<CompiledSet>, backend: &HeaderMap) -> Self {
        Self {
            set: Arc::clone(set),
            connection: backend
                .get_all(header::CONNECTION)
                .into_iter()
                .cloned()
                .collect(),
        }
    }

    /// What the client is told to expect.
    pub(crate) fn announcement(&self, backend: &HeaderMap) -> Option<HeaderValue> {
        let filter = self.rules()?;
        announcement(&announced(backend, |name| filter.keeps_trailer(name)))
    }

    /// Takes away what does not go on.
    pub(crate) fn filter(&self, trailers: &mut HeaderMap) {
        match self.rules() {
            Some(filter) => retain(trailers, |name| {
                filter.keeps_trailer(name.as_str().as_bytes())
            }),
            None => trailers.clear(),
        }
    }

    fn rules(&self) -> Option<ResponseFilter<'_>> {
        let values = self.connection.iter().map(HeaderValue::as_bytes);
        Some(ResponseFilter {
            nominations: Nominations::parse(values).ok()?,
            edits: self.set.chain.response_headers(),
        })
    }
}
