//! Reads what a request asks for, in its one meaning, or refuses it (R16). Pure.

use std::borrow::Cow;

use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Version as HttpVersion, header,
    request::Parts, uri::PathAndQuery,
};
use routing::{
    headers::Nominations,
    host::{self, Authority, HostProblem, Scheme, Version},
    path::{self, PathProblem},
    refusal::Refusal,
};

use crate::{
    codec::head::HeadError,
    options::{Defences, Limits},
};

/// What a field of HTTP/2 counts beside its name and value.
const FIELD_OVERHEAD: usize = 32;

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct Asked<'h> {
    pub(crate) authority: Authority<'h>,
    /// The host that is matched: that of the authority.
    pub(crate) host: Box<str>,
    /// The normalised path, and the query as it came.
    pub(crate) target: PathAndQuery,
    pub(crate) nominations: Nominations<'h>,
    /// The key of a WebSocket handshake.
    pub(crate) upgrade: Option<Upgrade>,
}

/// An upgrade that may be granted.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    /// The protocol.
    pub(crate) protocol: HeaderValue,
    /// `Sec-WebSocket-Key`.
    pub(crate) key: Option<HeaderValue>,
}

/// Reads a request head.
pub(crate) fn read<'h>(
    head: &'h Parts,
    version: Version,
    scheme: Scheme,
    has_body: bool,
    defences: &Defences,
) -> Result<Asked<'h>, Refusal> {
    if defences.methods {
        check_method(&head.method, &head.extensions)?;
    }
    check_expectation(&head.headers)?;
    host::check_scheme(head.uri.scheme_str(), scheme).map_err(host_refusal)?;
    if head.uri.scheme().is_none() && head.uri.authority().is_some() && defences.methods {
        return Err(Refusal::TargetForm);
    }
    let (authority, host) = authority(head, version, scheme, defences)?;
    let target = target(
        head.uri.path_and_query().ok_or(Refusal::TargetForm)?,
        defences,
    )?;
    let values = |name| {
        head.headers
            .get_all(name)
            .into_iter()
            .map(HeaderValue::as_bytes)
    };
    let nominations = Nominations::parse(values(header::CONNECTION))?;
    let upgrade = match head.headers.get(header::UPGRADE) {
        None => None,
        Some(protocol) if !defences.upgrades => Some(Upgrade {
            protocol: protocol.clone(),
            key: None,
        }),
        Some(protocol) => {
            Some(websocket(head, &nominations, has_body, protocol).ok_or(Refusal::UpgradeRefused)?)
        }
    };
    Ok(Asked {
        authority,
        host,
        target,
        nominations,
        upgrade,
    })
}

/// Bounds an HTTP/2 head like one of HTTP/1, whose guard does it before it is parsed. Fields count
/// as RFC 9113 section 6.5.2 has it.
pub(crate) fn check_size(head: &Parts, limits: &Limits) -> Result<(), Refusal> {
    let size = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len() + value.len() + FIELD_OVERHEAD
    };
    let target = head
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if target > limits.target_bytes {
        return Err(Refusal::UriTooLong);
    }
    let bytes: usize = head.headers.iter().map(size).sum();
    if head.headers.len() > limits.headers || bytes > limits.head_bytes {
        return Err(Refusal::HeadersTooLarge);
    }
    Ok(())
}

/// What a request on the plain port asks for: enough to redirect it.
#[derive(Debug)]
pub(crate) struct Plain<'h> {
    authority: Authority<'h>,
    pub(crate) target: PathAndQuery,
}

impl Plain<'_> {
    pub(crate) fn host(&self) -> &str {
        self.authority.host()
    }
}

/// Reads a request on the plain port.
pub(crate) fn read_plain<B>(request: &http::Request<B>) -> Result<Plain<'_>, Refusal> {
    let uri = request.uri();
    host::check_scheme(uri.scheme_str(), Scheme::Http).map_err(host_refusal)?;
    let named = uri.authority().map(http::uri::Authority::as_str);
    let headers = request
        .headers()
        .get_all(header::HOST)
        .into_iter()
        .map(HeaderValue::as_bytes);
    let authority =
        host::requested(Version::Http1, Scheme::Http, named, headers).map_err(host_refusal)?;
    let target = target(
        uri.path_and_query().ok_or(Refusal::TargetForm)?,
        &Defences::all(),
    )?;
    Ok(Plain { authority, target })
}

fn check_method(method: &Method, extensions: &Extensions) -> Result<(), Refusal> {
    match *method {
        Method::CONNECT if extensions.get::<hyper::ext::Protocol>().is_some() => {
            Err(Refusal::ExtendedConnectRefused)
        }
        Method::CONNECT => Err(Refusal::ConnectRefused),
        Method::TRACE => Err(Refusal::TraceRefused),
        _ => Ok(()),
    }
}

fn check_expectation(headers: &HeaderMap) -> Result<(), Refusal> {
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if headers.get_all(header::EXPECT).iter().all(known) {
        Ok(())
    } else {
        Err(Refusal::ExpectationFailed)
    }
}

fn authority<'h>(
    head: &'h Parts,
    version: Version,
    scheme: Scheme,
    defences: &Defences,
) -> Result<(Authority<'h>, Box<str>), Refusal> {
    let target = head.uri.authority().map(http::uri::Authority::as_str);
    let headers = head
        .headers
        .get_all(header::HOST)
        .into_iter()
        .map(HeaderValue::as_bytes);
    if defences.host {
        let authority = host::requested(version, scheme, target, headers).map_err(host_refusal)?;
        let host = authority.host().into();
        return Ok((authority, host));
    }
    let first = headers
        .into_iter()
        .next()
        .and_then(|value| std::str::from_utf8(value).ok());
    let text = first.or(target).ok_or(Refusal::HostMissing)?;
    let host = text.split(':').next().unwrap_or_default().into();
    Ok((Authority::parse(text).map_err(host_refusal)?, host))
}

fn target(given: &PathAndQuery, defences: &Defences) -> Result<PathAndQuery, Refusal> {
    if !defences.path {
        return Ok(given.clone());
    }
    if let Some(query) = given.query() {
        path::check_query(query).map_err(path_refusal)?;
    }
    match path::normalise(given.path()).map_err(path_refusal)? {
        Cow::Borrowed(_) => Ok(given.clone()),
        Cow::Owned(mut path) => {
            if let Some(query) = given.query() {
                path.push('?');
                path.push_str(query);
            }
            PathAndQuery::try_from(path).map_err(|_| Refusal::MalformedRequest)
        }
    }
}

/// RFC 6455 section 4.2.1: anything less than a whole handshake is not one.
fn websocket(
    head: &Parts,
    nominations: &Nominations<'_>,
    has_body: bool,
    protocol: &HeaderValue,
) -> Option<Upgrade> {
    let only = |name| {
        let mut values = head.headers.get_all(name).into_iter();
        values.next().filter(|_| values.next().is_none())
    };
    only(header::UPGRADE)?;
    let key = only(header::SEC_WEBSOCKET_KEY)?;
    let fine = head.method == Method::GET
        && head.version == HttpVersion::HTTP_11
        && !has_body
        && nominations.has("upgrade")
        && protocol.as_bytes().eq_ignore_ascii_case(b"websocket")
        && only(header::SEC_WEBSOCKET_VERSION)?.as_bytes() == b"13"
        && key.len() == 24;
    fine.then(|| Upgrade {
        protocol: HeaderValue::from_static("websocket"),
        key: Some(key.clone()),
    })
}

/// The refusal for a head that never reached the parser.
pub(crate) const fn head_refusal(error: HeadError) -> Refusal {
    match error {
        HeadError::Framing | HeadError::Chunk => Refusal::AmbiguousFraming,
        HeadError::RequestLine | HeadError::Newline => Refusal::MalformedRequest,
        HeadError::Fold | HeadError::Name | HeadError::Value => Refusal::BadHeader,
        HeadError::Version => Refusal::VersionRefused,
        HeadError::Host => Refusal::HostDuplicate,
        HeadError::TooLarge => Refusal::HeadersTooLarge,
        HeadError::TargetTooLong => Refusal::UriTooLong,
        HeadError::Target => Refusal::MalformedRequest,
        HeadError::Late => Refusal::RequestTimeout,
    }
}

pub(crate) const fn host_refusal(problem: HostProblem) -> Refusal {
    match problem {
        HostProblem::Missing => Refusal::HostMissing,
        HostProblem::Duplicate => Refusal::HostDuplicate,
        HostProblem::Conflict => Refusal::HostConflict,
        HostProblem::Invalid => Refusal::HostInvalid,
        HostProblem::Scheme => Refusal::SchemeConflict,
    }
}

pub(crate) const fn path_refusal(problem: PathProblem) -> Refusal {
    match problem {
        PathProblem::NotAbsolute => Refusal::TargetForm,
        PathProblem::TooLong => Refusal::UriTooLong,
        PathProblem::Control => Refusal::PathControl,
        PathProblem::Character => Refusal::PathCharacter,
        PathProblem::Backslash => Refusal::PathBackslash,
        PathProblem::EncodedSlash => Refusal::PathEncodedSlash,
        PathProblem::Escape => Refusal::PathEscape,
        PathProblem::NotUtf8 => Refusal::PathNotUtf8,
        PathProblem::AboveRoot => Refusal::PathAboveRoot,
        PathProblem::Ambiguous => Refusal::PathAmbiguous,
    }
}
