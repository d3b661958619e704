//! What of a client's headers reaches a backend, on every route (R16).
//!
//! Backends believe proxies: a header that says who the user is, which certificate was shown,
//! where the request came from or which URL is really meant decides there, and so must never be
//! the client's own. Such names are dropped before anything is added, from trailers too, in every
//! spelling that a backend may take for them: CGI, WSGI and their heirs turn each character that
//! is neither letter nor digit into an underscore, so `X_Forwarded_For` and `x.forwarded.for`
//! are `X-Forwarded-For` to them. Hop-by-hop headers end here (RFC 9110 section 7.6.1), with those
//! that `Connection` nominates, save the few on which a decision may have rested.
//!
//! The edge then adds [`added`]. The lists stand in [`names`].

use crate::{modules::headers::HeaderEdits, refusal::Refusal};

pub mod names;

use names::{
    EXACT_ONLY, FORGED_PREFIXES, HOP_BY_HOP, METHOD_OVERRIDES, NEVER_NOMINATED, NO_TRAILER,
    NO_TRAILER_PREFIXES, SPECIAL,
};

/// What the edge says of a request, to every backend.
pub mod added {
    /// Exactly the peer's address.
    pub const FORWARDED_FOR: &str = "x-forwarded-for";
    /// `http` or `https`.
    pub const FORWARDED_PROTO: &str = "x-forwarded-proto";
    /// The host that was matched, with the port that the client named.
    pub const FORWARDED_HOST: &str = "x-forwarded-host";
    /// The request's id, also in the access log and on error pages.
    pub const REQUEST_ID: &str = "x-request-id";
    /// All of them.
    pub const ALL: [&str; 4] = [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_HOST, REQUEST_ID];
}

/// The header by which programs learn why the edge refused; a backend cannot set it.
pub const ERROR_CODE: &str = "ngrok-error-code";

/// What becomes of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It goes on.
    Kept,
    /// It was for this hop.
    HopByHop,
    /// It says what only the edge may say, or looks like such a one.
    Forged,
    /// It asks for another method than that of the request.
    MethodOverride,
}

/// What becomes of a request header by its name alone, in any case.
#[must_use]
pub fn fate(name: &[u8]) -> Fate {
    if FORGED_PREFIXES.begin(name) {
        return Fate::Forged;
    }
    if !SPECIAL.contains(name) {
        return Fate::Kept;
    }
    let is_exact = name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    if HOP_BY_HOP.contains(name) {
        Fate::HopByHop
    } else if METHOD_OVERRIDES.contains(name) {
        Fate::MethodOverride
    } else if EXACT_ONLY.contains(name) && is_exact {
        Fate::Kept
    } else {
        Fate::Forged
    }
}

/// The headers that `Connection` names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nominations<'r> {
    names: [&'r [u8]; NOMINATIONS_MAX],
    length: usize,
}

/// More options in `Connection` are refused: every header is compared with every one.
pub const NOMINATIONS_MAX: usize = 16;

impl<'r> Nominations<'r> {
    /// Reads every value of `Connection`.
    ///
    /// # Errors
    /// [`Refusal::BadHeader`] when there are too many options or one is no header name.
    pub fn parse(values: impl IntoIterator<Item = &'r [u8]>) -> Result<Self, Refusal> {
        let mut nominations = Self::default();
        let options = values
            .into_iter()
            .flat_map(|value| value.split(|byte| *byte == b','));
        for option in options
            .map(<[u8]>::trim_ascii)
            .filter(|option| !option.is_empty())
        {
            if !option.iter().all(|byte| is_token(*byte)) {
                return Err(Refusal::BadHeader);
            }
            let place = nominations
                .names
                .get_mut(nominations.length)
                .ok_or(Refusal::BadHeader)?;
            *place = option;
            nominations.length += 1;
        }
        Ok(nominations)
    }

    /// Whether an option stands there (`close`, `upgrade`).
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.names()
            .any(|name| name.eq_ignore_ascii_case(option.as_bytes()))
    }

    /// Whether a header is for this hop because it is named here and may be.
    #[must_use]
    pub fn name(&self, header: &[u8]) -> bool {
        self.names().any(|name| name.eq_ignore_ascii_case(header))
            && !NEVER_NOMINATED.contains(header)
    }

    fn names(&self) -> impl Iterator<Item = &'r [u8]> {
        self.names.into_iter().take(self.length)
    }
}

/// Whether a byte may stand in a header name (RFC 9110 section 5.6.2).
pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Decides about the headers of one request, in one pass. Afterwards the proxy appends
/// [`added`], then what the edits add.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFilter<'r> {
    /// What the client's `Connection` names.
    pub nominations: Nominations<'r>,
    /// The route's changes.
    pub edits: Option<&'r HeaderEdits>,
    /// Whether a decision on the route depends on the method.
    pub method_decides: bool,
}

impl RequestFilter<'_> {
    /// Whether a client's header goes on to the backend.
    #[must_use]
    pub fn keeps(&self, name: &[u8]) -> bool {
        let by_name = match fate(name) {
            Fate::Kept => true,
            Fate::MethodOverride => !self.method_decides,
            Fate::HopByHop | Fate::Forged => false,
        };
        by_name
            && !self.nominations.name(name)
            && !self.edits.is_some_and(|edits| edits.removes(name))
    }

    /// Whether a client's trailer goes on: nothing that decides how a message is read may come
    /// after it (RFC 9110 section 6.5.1).
    #[must_use]
    pub fn keeps_trailer(&self, name: &[u8]) -> bool {
        self.keeps(name) && may_trail(name)
    }
}

/// Decides about the headers of one response.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseFilter<'r> {
    /// What the backend's `Connection` names.
    pub nominations: Nominations<'r>,
    /// The route's changes.
    pub edits: Option<&'r HeaderEdits>,
}

impl ResponseFilter<'_> {
    /// Whether a backend's header goes on to the client.
    #[must_use]
    pub fn keeps(&self, name: &[u8]) -> bool {
        !HOP_BY_HOP.contains(name)
            && !name.eq_ignore_ascii_case(ERROR_CODE.as_bytes())
            && !self.nominations.name(name)
            && !self.edits.is_some_and(|edits| edits.removes(name))
    }

    /// Whether a backend's trailer goes on: nothing that has a meaning between edge and backend
    /// alone, either.
    #[must_use]
    pub fn keeps_trailer(&self, name: &[u8]) -> bool {
        self.keeps(name) && fate(name) == Fate::Kept && may_trail(name)
    }
}

fn may_trail(name: &[u8]) -> bool {
    !NO_TRAILER.contains(name) && !NO_TRAILER_PREFIXES.begin(name)
}

#[cfg(test)]
mod tests;
