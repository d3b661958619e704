//! What of a request's and an answer's headers goes on, by the rules of `routing::headers`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use routing::{
    headers::{Nominations, RequestFilter, ResponseFilter, added},
    host::Version,
    modules::headers::HeaderEdits,
    refusal::Refusal,
    table::CompiledSet,
};

use crate::{
    connection::Peer,
    options::Defences,
    request::{Asked, Upgrade},
    worker::RequestId,
};

const FORWARDED_FOR: HeaderName = HeaderName::from_static(added::FORWARDED_FOR);
const FORWARDED_PROTO: HeaderName = HeaderName::from_static(added::FORWARDED_PROTO);
const FORWARDED_HOST: HeaderName = HeaderName::from_static(added::FORWARDED_HOST);
const REQUEST_ID: HeaderName = HeaderName::from_static(added::REQUEST_ID);

/// How many headers of its own the edge adds at most, those of modules aside.
const ADDED_MAX: usize = 8;

/// A response to a WebSocket handshake proves that it read it (RFC 6455 section 4.2.2).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Adds to the client's headers what the edge and the route say.
pub(crate) fn add_to_request(
    headers: &mut HeaderMap,
    peer: &Peer,
    host: HeaderValue,
    upgrade: Option<&Upgrade>,
    edits: Option<&HeaderEdits>,
    id: RequestId,
) {
    if peer.version == Version::Http2 {
        join_cookies(headers);
    }
    headers.insert(FORWARDED_FOR, peer.forwarded_for.clone());
    headers.insert(
        FORWARDED_PROTO,
        HeaderValue::from_static(peer.scheme.name()),
    );
    headers.insert(FORWARDED_HOST, host.clone());
    headers.insert(REQUEST_ID, id.header());
    if let Some(Upgrade { protocol, key: _ }) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
    }
    let replaced = edits
        .and_then(HeaderEdits::host)
        .and_then(|host| HeaderValue::from_str(host).ok());
    headers.insert(header::HOST, replaced.unwrap_or(host));
    add(headers, edits);
}

/// The host as backends see it. Shares the header's bytes when they are spelled so already.
pub(crate) fn host_value(headers: &HeaderMap, asked: &Asked<'_>) -> Result<HeaderValue, Refusal> {
    let given = headers.get(header::HOST);
    if let Some(given) = given
        && asked.authority.port().is_none()
        && given.as_bytes() == asked.authority.host().as_bytes()
    {
        return Ok(given.clone());
    }
    HeaderValue::try_from(asked.authority.to_string()).map_err(|_| Refusal::HostInvalid)
}

/// The rules for what a client sends.
pub(crate) fn request_filter<'r>(asked: &Asked<'r>, set: &'r CompiledSet) -> RequestFilter<'r> {
    RequestFilter {
        nominations: asked.nominations,
        edits: set.chain.request_headers(),
        method_decides: set.chain.method_decides(),
    }
}

/// The client's headers that go on, as a copy: the request may have to be begun anew. The length
/// is the codec's to say.
pub(crate) fn kept(
    headers: &HeaderMap,
    filter: &RequestFilter<'_>,
    defences: &Defences,
) -> HeaderMap {
    let keeps = |name: &HeaderName| {
        let kept = if defences.headers {
            filter.keeps(name.as_str().as_bytes())
        } else {
            !is_framing(name)
        };
        kept && *name != header::CONTENT_LENGTH && *name != header::EXPECT
    };
    let mut kept = HeaderMap::with_capacity(headers.len() + ADDED_MAX);
    for (name, value) in headers.iter().filter(|(name, _)| keeps(name)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

fn is_framing(name: &HeaderName) -> bool {
    [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
    ]
    .contains(name)
}

fn remove(headers: &mut HeaderMap, names: Vec<HeaderName>) {
    for name in names {
        headers.remove(name);
    }
}

/// HTTP/2 may send one cookie a header; HTTP/1 has one header (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    if crumbs.next().is_none() || crumbs.next().is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = headers
        .get_all(header::COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Compiled edits hold only what a header may hold.
fn add(headers: &mut HeaderMap, edits: Option<&HeaderEdits>) {
    for (name, value) in edits.into_iter().flat_map(HeaderEdits::added) {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value.as_bytes()),
        ) {
            headers.append(name, value);
        }
    }
}

/// Whether the parser that read an answer can only have found one end of it. Its body goes on in
/// a framing of our own, so that no client sees what is refused here.
pub(crate) fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).into_iter();
    let Some(coding) = codings.next() else {
        return Ok(());
    };
    let alone = codings.next().is_none() && !headers.contains_key(header::CONTENT_LENGTH);
    if alone && coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        Ok(())
    } else {
        Err(Refusal::UpstreamInvalid)
    }
}

/// Turns a backend's headers into those that the client gets.
pub(crate) fn response_headers(
    headers: &mut HeaderMap,
    edits: Option<&HeaderEdits>,
    method: &Method,
    status: StatusCode,
) -> Result<(), Refusal> {
    let values = headers
        .get_all(header::CONNECTION)
        .into_iter()
        .map(HeaderValue::as_bytes);
    let nominations = Nominations::parse(values).map_err(|_| Refusal::UpstreamInvalid)?;
    let filter = ResponseFilter { nominations, edits };
    // Where there is a body its length is the codec's to say; where there is none by definition
    // the header says what it would be.
    let keep_length = method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
    let goes = |name: &&HeaderName| {
        !filter.keeps(name.as_str().as_bytes())
            || (**name == header::CONTENT_LENGTH && !keep_length)
    };
    let names = headers.keys().filter(goes).cloned().collect();
    remove(headers, names);
    add(headers, edits);
    Ok(())
}

/// Whether a 101 grants the upgrade that was asked for: a tunnel begins behind nothing less.
pub(crate) fn grants(
    upgrade: &Upgrade,
    status: StatusCode,
    headers: &HeaderMap,
    defences: &Defences,
) -> bool {
    if status != StatusCode::SWITCHING_PROTOCOLS || !defences.upgrades {
        return status == StatusCode::SWITCHING_PROTOCOLS;
    }
    let values = headers
        .get_all(header::CONNECTION)
        .into_iter()
        .map(HeaderValue::as_bytes);
    let connection = Nominations::parse(values).is_ok_and(|nominations| nominations.has("upgrade"));
    let mut protocols = headers.get_all(header::UPGRADE).into_iter();
    let protocol = protocols.next().is_some_and(|value| {
        value
            .as_bytes()
            .eq_ignore_ascii_case(upgrade.protocol.as_bytes())
    });
    let accepted = upgrade.key.as_ref().is_some_and(|key| {
        headers
            .get(header::SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|accept| accept.as_bytes() == websocket_accept(key.as_bytes()).as_bytes())
    });
    connection && protocol && protocols.next().is_none() && accepted
}

fn websocket_accept(key: &[u8]) -> String {
    let mut hash = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key);
    hash.update(WEBSOCKET_GUID);
    STANDARD.encode(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_begins_behind_a_verified_101_only() {
        // The example of RFC 6455 section 1.3.
        let upgrade = Upgrade {
            protocol: HeaderValue::from_static("websocket"),
            key: Some(HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==")),
        };
        let headers = |accept: &'static str, protocol: &'static str, connection: &'static str| {
            HeaderMap::from_iter([
                (header::CONNECTION, HeaderValue::from_static(connection)),
                (header::UPGRADE, HeaderValue::from_static(protocol)),
                (
                    header::SEC_WEBSOCKET_ACCEPT,
                    HeaderValue::from_static(accept),
                ),
            ])
        };
        let grants =
            |status, headers: &HeaderMap| grants(&upgrade, status, headers, &Defences::all());
        let good = headers("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "WebSocket", "Upgrade");
        assert!(grants(StatusCode::SWITCHING_PROTOCOLS, &good));
        assert!(!grants(StatusCode::OK, &good));
        for bad in [
            headers("s3pPLMBiTxaQ9kYGzzhZRbK+xOp=", "websocket", "upgrade"),
            headers("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "h2c", "upgrade"),
            headers("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "websocket", "keep-alive"),
        ] {
            assert!(!grants(StatusCode::SWITCHING_PROTOCOLS, &bad));
        }
    }

    #[test]
    fn crumbs_of_cookies_become_one_header() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1"));
        headers.append(header::COOKIE, HeaderValue::from_static("b=2"));
        join_cookies(&mut headers);
        assert_eq!(
            headers.get_all(header::COOKIE).iter().collect::<Vec<_>>(),
            ["a=1; b=2"]
        );
    }
}
