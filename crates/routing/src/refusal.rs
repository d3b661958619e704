//! Every reason for which the edge refuses a request, as one closed list.
//!
//! A reason gives everything that is said about it: the HTTP status, the error code in the
//! `ngrok-error-code` header, the label in metrics and the access log, the page for people, the
//! `retry-after`, whether the connection ends, and the anchor in the documentation. They stand in
//! one table below, so that a reason without a page cannot be written.
//!
//! Texts are for whoever sent the request: they name the error and what can be done about it,
//! never a backend, an address or a rule of the operator's.

use crate::{host::HostProblem, path::PathProblem};

/// What is said about a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    status: u16,
    code: &'static str,
    label: &'static str,
    title: &'static str,
    text: &'static str,
    retry_after_secs: Option<u32>,
    closes_connection: bool,
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident {
        $status:literal $code:literal $label:literal,
        $title:literal, $text:literal,
        retry: $retry:expr, closes: $closes:literal
    })*) => {
        /// Why the edge does not pass a request on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Refusal {
            $($(#[$doc])* $name,)*
        }

        impl Refusal {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            const fn entry(self) -> Entry {
                match self {
                    $(Self::$name => Entry {
                        status: $status,
                        code: $code,
                        label: $label,
                        title: $title,
                        text: $text,
                        retry_after_secs: $retry,
                        closes_connection: $closes,
                    },)*
                }
            }
        }
    };
}

refusals! {
    /// The route has no backend: closed (R1).
    RouteClosed {
        503 "ERR_NGROK_6015" "route-closed",
        "This page is closed",
        "The route exists, but it is not open. It opens by itself once everything that protects it is in force.",
        retry: Some(10), closes: false
    }
    /// The route's set holds something that this process cannot enforce as stored (R10).
    NotEnforceable {
        503 "ERR_PORTCULLIS_NOT_ENFORCEABLE" "not-enforceable",
        "This page is closed",
        "The route asks for a protection that this edge cannot enforce, so it lets nobody through.",
        retry: Some(60), closes: false
    }
    /// The stored state could not be read whole: everything is refused (R10).
    StateUnreadable {
        503 "ERR_PORTCULLIS_STATE_UNREADABLE" "state-unreadable",
        "Not ready",
        "This edge could not read its configuration and lets nobody through until it can.",
        retry: Some(30), closes: false
    }
    /// Open, but the backend has no ready endpoint.
    NoEndpoints {
        503 "ERR_PORTCULLIS_NO_ENDPOINTS" "no-endpoints",
        "No server is ready",
        "The route is open, but no server stands behind it at the moment.",
        retry: Some(5), closes: false
    }
    /// No edge answers for the host.
    UnknownHost {
        404 "ERR_NGROK_3200" "unknown-host",
        "Unknown host",
        "Nothing is served under this host name.",
        retry: None, closes: false
    }
    /// The host has no route for the path.
    NoRoute {
        404 "ERR_PORTCULLIS_NO_ROUTE" "no-route",
        "Not found",
        "Nothing is served under this path.",
        retry: None, closes: false
    }
    /// The IP restriction does not let the client's address pass.
    AddressRefused {
        403 "ERR_NGROK_3203" "address-refused",
        "Access denied",
        "Your network address may not use this page.",
        retry: None, closes: false
    }
    /// The connection was made for a host with other TLS demands, or for none (R16).
    Misdirected {
        421 "ERR_PORTCULLIS_MISDIRECTED" "misdirected",
        "Wrong connection",
        "This connection was made for another host. Open a new connection for this one.",
        retry: None, closes: true
    }
    /// The connection's handshake does not meet the present TLS demands (R12).
    HandshakeOutdated {
        421 "ERR_PORTCULLIS_HANDSHAKE_OUTDATED" "handshake-outdated",
        "Wrong connection",
        "What this host asks of connections has changed. Open a new connection.",
        retry: None, closes: true
    }
    /// The route changed while the request was being judged, or no longer admits it (R12).
    Revoked {
        503 "ERR_PORTCULLIS_REVOKED" "revoked",
        "Try again",
        "What this page asks of requests has changed in this moment.",
        retry: Some(1), closes: true
    }
    /// A module failed (R11).
    ModuleFailed {
        503 "ERR_PORTCULLIS_MODULE_FAILED" "module-failed",
        "Try again later",
        "A check on this page could not be made, so nobody is let through.",
        retry: Some(5), closes: false
    }
    /// The edge itself failed on this request (R11).
    Internal {
        500 "ERR_PORTCULLIS_INTERNAL" "internal",
        "Internal error",
        "The edge failed on this request. It was not passed on.",
        retry: None, closes: true
    }
    /// The request's head cannot be read.
    MalformedRequest {
        400 "ERR_PORTCULLIS_MALFORMED_REQUEST" "malformed-request",
        "Bad request",
        "The request is not well-formed HTTP.",
        retry: None, closes: true
    }
    /// Where the message ends can be understood in two ways (smuggling).
    AmbiguousFraming {
        400 "ERR_PORTCULLIS_AMBIGUOUS_FRAMING" "ambiguous-framing",
        "Bad request",
        "The request does not say clearly where its body ends.",
        retry: None, closes: true
    }
    /// A header's name or value is not allowed, or `Connection` names too much.
    BadHeader {
        400 "ERR_PORTCULLIS_BAD_HEADER" "bad-header",
        "Bad request",
        "A header of the request is not well-formed.",
        retry: None, closes: true
    }
    /// No Host, where one is needed.
    HostMissing {
        400 "ERR_PORTCULLIS_HOST_MISSING" "host-missing",
        "Bad request",
        "The request does not name a host.",
        retry: None, closes: true
    }
    /// More than one Host.
    HostDuplicate {
        400 "ERR_PORTCULLIS_HOST_DUPLICATE" "host-duplicate",
        "Bad request",
        "The request names its host more than once.",
        retry: None, closes: true
    }
    /// Host and target, or `:authority`, name different hosts.
    HostConflict {
        400 "ERR_PORTCULLIS_HOST_CONFLICT" "host-conflict",
        "Bad request",
        "The request names two different hosts.",
        retry: None, closes: true
    }
    /// Not a host and port: user information, a bad port, characters that no name has.
    HostInvalid {
        400 "ERR_PORTCULLIS_HOST_INVALID" "host-invalid",
        "Bad request",
        "The request's host is not a host name with an optional port.",
        retry: None, closes: true
    }
    /// The target's scheme is not that of the connection.
    SchemeConflict {
        400 "ERR_PORTCULLIS_SCHEME_CONFLICT" "scheme-conflict",
        "Bad request",
        "The request's address names another scheme than that of the connection.",
        retry: None, closes: true
    }
    /// The target is neither a path nor an absolute address.
    TargetForm {
        400 "ERR_PORTCULLIS_TARGET_FORM" "target-form",
        "Bad request",
        "The request's target must be a path that starts with a slash.",
        retry: None, closes: true
    }
    /// A control character, plain or encoded, in path or query.
    PathControl {
        400 "ERR_PORTCULLIS_PATH_CONTROL" "path-control",
        "Bad request",
        "The path holds a control character.",
        retry: None, closes: true
    }
    /// A space, a fragment or a byte beyond ASCII, unencoded, in path or query.
    PathCharacter {
        400 "ERR_PORTCULLIS_PATH_CHARACTER" "path-character",
        "Bad request",
        "The path holds a character that must be percent-encoded.",
        retry: None, closes: true
    }
    /// A backslash, plain or encoded, in the path.
    PathBackslash {
        400 "ERR_PORTCULLIS_PATH_BACKSLASH" "path-backslash",
        "Bad request",
        "The path holds a backslash.",
        retry: None, closes: true
    }
    /// An encoded slash in the path.
    PathEncodedSlash {
        400 "ERR_PORTCULLIS_PATH_ENCODED_SLASH" "path-encoded-slash",
        "Bad request",
        "The path holds a percent-encoded slash.",
        retry: None, closes: true
    }
    /// A percent sign without two hexadecimal digits.
    PathEscape {
        400 "ERR_PORTCULLIS_PATH_ESCAPE" "path-escape",
        "Bad request",
        "The path holds a percent sign that is not followed by two hexadecimal digits.",
        retry: None, closes: true
    }
    /// Encoded bytes that are not UTF-8, overlong forms included.
    PathNotUtf8 {
        400 "ERR_PORTCULLIS_PATH_NOT_UTF8" "path-not-utf8",
        "Bad request",
        "The encoded characters of the path are not UTF-8.",
        retry: None, closes: true
    }
    /// Dot segments that lead above the root.
    PathAboveRoot {
        400 "ERR_PORTCULLIS_PATH_ABOVE_ROOT" "path-above-root",
        "Bad request",
        "The path leads above its root.",
        retry: None, closes: true
    }
    /// Backends may read the path as that of another route (R16).
    PathAmbiguous {
        400 "ERR_PORTCULLIS_PATH_AMBIGUOUS" "path-ambiguous",
        "Bad request",
        "The path can be read in two ways that lead to different pages. Write it without parameters and double encoding.",
        retry: None, closes: false
    }
    /// Plain CONNECT: the edge is no forward proxy.
    ConnectRefused {
        405 "ERR_PORTCULLIS_CONNECT_REFUSED" "connect-refused",
        "Method not allowed",
        "CONNECT is not served here.",
        retry: None, closes: true
    }
    /// HTTP/2 extended CONNECT (RFC 8441).
    ExtendedConnectRefused {
        501 "ERR_PORTCULLIS_EXTENDED_CONNECT_REFUSED" "extended-connect-refused",
        "Not implemented",
        "Extended CONNECT is not served here. Open WebSockets over HTTP/1.1.",
        retry: None, closes: false
    }
    /// TRACE would show the sender what the edge adds.
    TraceRefused {
        405 "ERR_PORTCULLIS_TRACE_REFUSED" "trace-refused",
        "Method not allowed",
        "TRACE is not served here.",
        retry: None, closes: false
    }
    /// An upgrade to something else than WebSocket, or a malformed one.
    UpgradeRefused {
        400 "ERR_PORTCULLIS_UPGRADE_REFUSED" "upgrade-refused",
        "Bad request",
        "Connections are upgraded to WebSocket only.",
        retry: None, closes: true
    }
    /// An expectation other than `100-continue`.
    ExpectationFailed {
        417 "ERR_PORTCULLIS_EXPECTATION_FAILED" "expectation-failed",
        "Expectation failed",
        "The request expects something that this edge does not know.",
        retry: None, closes: true
    }
    /// A version of HTTP that is not served.
    VersionRefused {
        505 "ERR_PORTCULLIS_VERSION_REFUSED" "version-refused",
        "Version not supported",
        "This version of HTTP is not served here.",
        retry: None, closes: true
    }
    /// Path or query are too long.
    UriTooLong {
        414 "ERR_PORTCULLIS_URI_TOO_LONG" "uri-too-long",
        "Address too long",
        "The request's address is longer than this edge accepts.",
        retry: None, closes: true
    }
    /// Too many headers, or too many bytes of them.
    HeadersTooLarge {
        431 "ERR_PORTCULLIS_HEADERS_TOO_LARGE" "headers-too-large",
        "Headers too large",
        "The request's headers are larger than this edge accepts.",
        retry: None, closes: true
    }
    /// The body is larger than allowed.
    BodyTooLarge {
        413 "ERR_PORTCULLIS_BODY_TOO_LARGE" "body-too-large",
        "Body too large",
        "The request's body is larger than this edge accepts.",
        retry: None, closes: true
    }
    /// The client did not send the request in time.
    RequestTimeout {
        408 "ERR_PORTCULLIS_REQUEST_TIMEOUT" "request-timeout",
        "Too slow",
        "The request did not arrive in time.",
        retry: None, closes: true
    }
    /// No endpoint of the backend accepts connections.
    UpstreamUnreachable {
        502 "ERR_PORTCULLIS_UPSTREAM_UNREACHABLE" "upstream-unreachable",
        "Server not reachable",
        "The server behind this page does not accept connections.",
        retry: Some(5), closes: false
    }
    /// The backend's address may not be dialled (R20).
    UpstreamForbidden {
        502 "ERR_PORTCULLIS_UPSTREAM_FORBIDDEN" "upstream-forbidden",
        "Server not reachable",
        "The server behind this page is at an address that this edge does not call.",
        retry: None, closes: false
    }
    /// The backend's answer is not well-formed, broke off, or is framed ambiguously.
    UpstreamInvalid {
        502 "ERR_PORTCULLIS_UPSTREAM_INVALID" "upstream-invalid",
        "Bad answer",
        "The server behind this page gave an answer that cannot be passed on.",
        retry: None, closes: false
    }
    /// The backend did not answer in time.
    UpstreamTimeout {
        504 "ERR_PORTCULLIS_UPSTREAM_TIMEOUT" "upstream-timeout",
        "No answer",
        "The server behind this page did not answer in time.",
        retry: Some(5), closes: false
    }
    /// A bound on work at once is reached.
    Overloaded {
        503 "ERR_PORTCULLIS_OVERLOADED" "overloaded",
        "Too busy",
        "The edge has as many requests as it can handle.",
        retry: Some(1), closes: false
    }
    /// The process is ending.
    Draining {
        503 "ERR_PORTCULLIS_DRAINING" "draining",
        "Restarting",
        "The edge is ending this connection. Open a new one.",
        retry: Some(1), closes: true
    }
}

impl Refusal {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.entry().status
    }

    /// The value of the `ngrok-error-code` header. `ERR_NGROK_…` where the edge API's catalogue
    /// has the case, `ERR_PORTCULLIS_…` where it has none.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.entry().code
    }

    /// The `reason` label of metrics and access log; also the anchor in the documentation.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.entry().label
    }

    /// The page's title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// What the page says below its title.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.entry().text
    }

    /// Seconds for `retry-after`; absent where trying again does not help.
    #[must_use]
    pub const fn retry_after_secs(self) -> Option<u32> {
        self.entry().retry_after_secs
    }

    /// Whether an HTTP/1 connection ends with the answer, since what follows on it, or who sent
    /// it, cannot be trusted. (On HTTP/2 the two 421s and the revocation end the connection too.)
    #[must_use]
    pub const fn closes_connection(self) -> bool {
        self.entry().closes_connection
    }

    /// Where the documentation explains it, relative to the root of the documentation.
    #[must_use]
    pub fn documentation(self) -> String {
        format!("reference/refusals.md#{}", self.label())
    }
}

impl From<PathProblem> for Refusal {
    fn from(problem: PathProblem) -> Self {
        match problem {
            PathProblem::NotAbsolute => Self::TargetForm,
            PathProblem::TooLong => Self::UriTooLong,
            PathProblem::Control => Self::PathControl,
            PathProblem::Character => Self::PathCharacter,
            PathProblem::Backslash => Self::PathBackslash,
            PathProblem::EncodedSlash => Self::PathEncodedSlash,
            PathProblem::Escape => Self::PathEscape,
            PathProblem::NotUtf8 => Self::PathNotUtf8,
            PathProblem::AboveRoot => Self::PathAboveRoot,
            PathProblem::Ambiguous => Self::PathAmbiguous,
        }
    }
}

impl From<HostProblem> for Refusal {
    fn from(problem: HostProblem) -> Self {
        match problem {
            HostProblem::Missing => Self::HostMissing,
            HostProblem::Duplicate => Self::HostDuplicate,
            HostProblem::Conflict => Self::HostConflict,
            HostProblem::Invalid => Self::HostInvalid,
            HostProblem::Scheme => Self::SchemeConflict,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_is_told_completely_and_apart_from_the_others() {
        let mut labels = BTreeSet::new();
        let mut codes = BTreeSet::new();
        for reason in Refusal::ALL {
            let label = reason.label();
            assert!(labels.insert(label), "{label} twice");
            assert!(codes.insert(reason.code()), "{} twice", reason.code());
            assert!((400..600).contains(&reason.status()), "{label}");
            assert!(
                label
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{label}"
            );
            let own = format!(
                "ERR_PORTCULLIS_{}",
                label.to_ascii_uppercase().replace('-', "_")
            );
            assert!(
                reason.code() == own || reason.code().starts_with("ERR_NGROK_"),
                "{label}"
            );
            assert!(
                !reason.title().ends_with('.') && reason.text().ends_with('.'),
                "{label}"
            );
            if reason.status() == 503 {
                assert!(
                    reason.retry_after_secs().is_some(),
                    "{label}: a 503 says when to come again"
                );
            }
            if reason.status() == 400 && *reason != Refusal::PathAmbiguous {
                assert!(
                    reason.closes_connection(),
                    "{label}: what follows a malformed head is not trusted"
                );
            }
        }
    }

    #[test]
    fn a_closed_route_says_what_programs_rely_on() {
        let closed = Refusal::RouteClosed;
        assert_eq!((closed.status(), closed.code()), (503, "ERR_NGROK_6015"));
        assert!(closed.retry_after_secs().is_some());
    }
}
