//! Errors: the codes of what is wrong with a call itself, and the body that carries any error.
//!
//! Why an edge refuses a well-formed command is a list of its own, beside the state machine that
//! refuses; its codes go out in the same body.
//!
//! The numbers are the edge API's own. Where it has none, this edge answers a word, as that API
//! does for its newer checks; a client that knows the numbers only still reads the HTTP status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal, $status:literal;)*) => {
        /// Every code for a call that never reached the edge's state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $meaning])+ $name,)*
        }

        impl Code {
            /// All of them, for tables and tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it stands in `error_code`.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// What it means, for the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+),)* }
            }
        }
    };
}

codes! {
    /// No authorization header.
    CredentialsMissing = "ERR_NGROK_200", 403;
    /// The authorization header is not of the form `Bearer KEY`.
    CredentialsUnreadable = "ERR_NGROK_201", 403;
    /// The API key has not the form of one.
    KeyMalformed = "ERR_NGROK_202", 403;
    /// No such API key.
    KeyUnknown = "ERR_NGROK_203", 403;
    /// The id of a key was sent instead of the key.
    KeyIdSent = "ERR_NGROK_208", 403;

    /// The content type is not JSON.
    ContentTypeUnsupported = "ERR_NGROK_210", 400;
    /// This verb takes no body.
    BodyNotAllowed = "ERR_NGROK_211", 400;
    /// The body could not be read.
    BodyUnreadable = "ERR_NGROK_212", 400;
    /// The body is not one JSON object.
    BodyUnparsable = "ERR_NGROK_213", 400;
    /// The body has a member that this call does not know.
    MemberUnknown = "ERR_NGROK_214", 400;
    /// A member has a value of the wrong kind.
    MemberInvalid = "ERR_NGROK_215", 400;
    /// A body without a content type.
    ContentTypeMissing = "ERR_NGROK_216", 400;
    /// The API version is not 2.
    VersionUnsupported = "ERR_NGROK_217", 400;
    /// The header that names the API version is missing.
    VersionMissing = "ERR_NGROK_218", 400;
    /// Not a TLS version that this edge can demand.
    TlsVersionInvalid = "ERR_NGROK_219", 400;
    /// Not an id of the kind that this path takes.
    IdInvalid = "ERR_NGROK_223", 400;
    /// Too many requests at the same time.
    TooManyRequests = "ERR_NGROK_225", 429;
    /// `before_id` is not an id of this collection.
    BeforeIdInvalid = "ERR_NGROK_227", 400;
    /// Not the id of an IP policy.
    PolicyIdInvalid = "ERR_NGROK_229", 400;
    /// The query is malformed.
    QueryMalformed = "ERR_NGROK_230", 400;
    /// The query has a parameter that this call does not know.
    ParameterUnknown = "ERR_NGROK_231", 400;
    /// A query parameter is given twice.
    ParameterTwice = "ERR_NGROK_232", 400;
    /// `limit` is not between 1 and 100.
    LimitOutOfRange = "ERR_NGROK_233", 400;
    /// Not the id of a backend.
    BackendIdInvalid = "ERR_NGROK_242", 400;
    /// `limit` is not a number.
    LimitNotANumber = "ERR_NGROK_244", 400;

    /// Not a region.
    RegionInvalid = "ERR_NGROK_400", 400;
    /// Not a domain name.
    DomainInvalid = "ERR_NGROK_402", 400;
    /// A domain update without any value.
    DomainUpdateEmpty = "ERR_NGROK_422", 400;

    /// An IP policy update without any value.
    PolicyUpdateEmpty = "ERR_NGROK_1400", 400;
    /// Not an address range.
    CidrInvalid = "ERR_NGROK_1406", 400;
    /// The range does not begin with its lowest address.
    CidrNotLowest = "ERR_NGROK_1409", 400;
    /// The range has no mask.
    CidrWithoutMask = "ERR_NGROK_1413", 400;
    /// Not an action of an IP policy rule.
    RuleActionInvalid = "ERR_NGROK_1422", 400;

    /// No certificate, or not one in PEM.
    CertificateInvalid = "ERR_NGROK_1900", 400;
    /// The private key is missing.
    PrivateKeyMissing = "ERR_NGROK_1901", 400;
    /// The private key is encrypted.
    PrivateKeyEncrypted = "ERR_NGROK_1902", 400;
    /// Not a private key in PEM, or of a kind that this edge cannot use.
    PrivateKeyInvalid = "ERR_NGROK_1903", 400;
    /// The private key belongs to another certificate.
    PrivateKeyMismatch = "ERR_NGROK_1923", 400;
    /// The chain is not in order: each certificate is signed by the next.
    ChainOutOfOrder = "ERR_NGROK_1926", 400;

    /// Not a status that a backend may answer.
    ResponseStatusInvalid = "ERR_NGROK_6517", 400;

    /// A tunnel group without a label.
    LabelsMissing = "ERR_NGROK_6508", 400;
    /// A static backend without an address.
    AddressMissing = "ERR_NGROK_6505", 400;
    /// Not the id of an edge.
    EdgeIdInvalid = "ERR_NGROK_7001", 400;
    /// A header is named twice, in different cases.
    HeaderTwice = "ERR_NGROK_7069", 400;
    /// Not of the form `host:port`.
    HostportInvalid = "ERR_NGROK_7104", 400;
    /// HTTPS edges always terminate TLS at the edge.
    TerminateAtNotAccepted = "ERR_NGROK_7109", 400;
    /// The id in the body differs from the one in the path.
    IdsDiffer = "ERR_NGROK_7110", 400;
    /// Not a port.
    HostportPortInvalid = "ERR_NGROK_7112", 400;
    /// The port of an HTTPS edge is 443.
    HostportPortNot443 = "ERR_NGROK_7116", 400;
    /// A route without a match.
    MatchMissing = "ERR_NGROK_7123", 400;
    /// Not a match type.
    MatchTypeInvalid = "ERR_NGROK_7130", 400;
    /// Not a path that a request can have.
    MatchInvalid = "ERR_NGROK_7131", 400;

    /// This edge does not enforce the module, so it does not store it.
    ModuleNotEnforced = "module_not_enforced", 400;
    /// This edge has not what the member asks for, so it does not store it.
    NotAvailable = "not_available_at_this_edge", 400;
    /// The request names a host that is not this edge.
    HostNotServed = "host_not_served", 421;
    /// An API key of role read changes nothing.
    ReadOnlyKey = "read_only_key", 403;
    /// Only an API key of role controller may do this.
    ControllerKeyRequired = "controller_key_required", 403;
    /// A command without the writer's term.
    TermMissing = "term_missing", 400;
    /// The request did not arrive in time.
    RequestTimeout = "request_timeout", 408;
    /// The body is larger than this edge reads.
    BodyTooLarge = "body_too_large", 413;
    /// Something went wrong inside the edge.
    Internal = "internal", 500;
    /// Another controller is at work, and the term is its.
    ControllerAtWork = "controller_at_work", 503;
    /// The edge cannot save or is going down.
    Unavailable = "unavailable", 503;
}

impl Code {
    /// The code with this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.text() == text)
    }
}

/// The body of every answer that is not a success. All members but the code are always there:
/// official clients fail on an answer that lacks one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// `ERR_NGROK_…` or a word; absent for a plain "not found".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The HTTP status once more.
    pub status_code: u16,
    /// What is wrong, for people.
    pub msg: String,
    /// Further facts; always `operation_id` or `path`.
    #[serde(default)]
    pub details: BTreeMap<String, String>,
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The code; absent for a plain "not found".
    pub code: Option<&'static str>,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, for people: one sentence without a full stop.
    pub message: String,
    /// Further facts.
    pub details: BTreeMap<String, String>,
}

impl ApiError {
    /// An error with a code.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: Some(code.text()),
            status: code.status(),
            message: message.into(),
            details: BTreeMap::new(),
        }
    }

    /// The thing that the path names is not there.
    #[must_use]
    pub fn not_found() -> Self {
        Self {
            code: None,
            status: 404,
            message: "Resource not found".to_owned(),
            details: BTreeMap::new(),
        }
    }

    /// This edge has no such path, or not with this verb.
    #[must_use]
    pub fn no_such_call(path: &str) -> Self {
        let details = [("path".to_owned(), path.to_owned())].into_iter().collect();
        Self {
            code: None,
            status: 404,
            message: "Not Found".to_owned(),
            details,
        }
    }

    /// A value of the wrong kind.
    #[must_use]
    pub fn invalid(member: &str, wanted: &str) -> Self {
        Self::new(Code::MemberInvalid, format!("{member} must be {wanted}"))
    }

    /// An error whose code is defined elsewhere.
    #[must_use]
    pub fn other(code: &'static str, status: u16, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            status,
            message: message.into(),
            details: BTreeMap::new(),
        }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The body for it, with the id under which the edge's log knows the call.
    #[must_use]
    pub fn into_body(self, operation_id: &str) -> ErrorBody {
        let Self {
            code,
            status,
            message,
            mut details,
        } = self;
        details.insert("operation_id".to_owned(), operation_id.to_owned());
        ErrorBody {
            error_code: code.map(str::to_owned),
            status_code: status,
            msg: message,
            details,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_another_and_has_a_status_that_refuses() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.text()), "{} twice", code.text());
            assert!((400..600).contains(&code.status()), "{}", code.text());
            assert!(code.meaning().trim().ends_with('.'), "{}", code.text());
            assert_eq!(Code::parse(code.text()), Some(*code));
        }
    }
}
