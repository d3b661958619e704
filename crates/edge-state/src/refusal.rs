//! Why an edge refuses a command: a closed list, each with its code and HTTP status.
//!
//! Codes with a number are those of the edge API's catalogue; where it has none for what this
//! edge adds (fencing, ownership, roles, kinds that it cannot enforce) a lower-case word stands
//! instead, as newer checks of that API do too.

use std::fmt;

use model::{host::HostPattern, id::EdgeId, place::Match};

macro_rules! refusal_codes {
    ($(#[doc = $doc:literal] $name:ident = $status:literal $code:literal;)*) => {
        /// Every reason for a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RefusalCode {
            $(#[doc = $doc] $name,)*
        }

        impl RefusalCode {
            /// Every code, for the reference and for tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// `ERR_NGROK_…`, or a word.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc.trim_ascii(),)* }
            }

            /// The HTTP status of the answer.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

refusal_codes! {
    /// The expected generation is not the present one: read again and plan again.
    GenerationMismatch = 409 "generation_mismatch";
    /// What was to be made is there already.
    AlreadyExists = 409 "already_exists";
    /// A writer of a higher term is at work (R19).
    Superseded = 409 "superseded";

    /// A key of role read changes nothing.
    ReadOnlyKey = 403 "read_only_key";
    /// Only a key of role controller may do this.
    ControllerKeyRequired = 403 "controller_key_required";
    /// It belongs to a controller, and the key is not a controller's (R20).
    OwnedByController = 403 "owned_by_controller";
    /// It belongs to another controller, or to a user of the API.
    OwnedByAnother = 403 "owned_by_another";

    /// This edge cannot enforce the module, so it does not store it.
    NotEnforced = 400 "module_not_enforced";
    /// It exists for good: another content is another object.
    Immutable = 400 "immutable";
    /// A record belongs to a controller's edge only.
    RecordWithoutController = 400 "record_without_controller";
    /// An id is in use for something else.
    IdInUse = 400 "id_in_use";
    /// The id is of another kind than the object.
    WrongIdKind = 400 "wrong_id_kind";

    /// No such edge.
    EdgeNotFound = 404 "ERR_NGROK_7000";
    /// Too many edges.
    TooManyEdges = 400 "ERR_NGROK_7009";
    /// An edge's or route's description is too long.
    EdgeDescription = 400 "ERR_NGROK_7073";
    /// An edge's or route's metadata are too long.
    EdgeMetadata = 400 "ERR_NGROK_7074";
    /// No reserved domain covers the host.
    HostNotReserved = 400 "ERR_NGROK_7117";
    /// Another edge answers for the host.
    HostTaken = 400 "ERR_NGROK_7122";
    /// Too many hosts on an edge.
    TooManyHosts = 400 "ERR_NGROK_7129";
    /// The module is not one of this kind of edge, or of a route.
    ModuleNotAvailable = 400 "ERR_NGROK_7021";
    /// Mutual TLS without a certificate authority.
    NoAuthority = 400 "ERR_NGROK_7072";

    /// No such route.
    RouteNotFound = 404 "ERR_NGROK_7124";
    /// Another route of the edge has this match.
    MatchTaken = 400 "ERR_NGROK_7126";
    /// Too many routes on an edge.
    TooManyRoutes = 400 "ERR_NGROK_7128";
    /// The match is no normalised path.
    MatchInvalid = 400 "ERR_NGROK_7131";
    /// The match is too long.
    MatchTooLong = 400 "ERR_NGROK_7135";
    /// More than one of oauth, oidc and saml is enabled.
    SeveralLogins = 400 "ERR_NGROK_7079";
    /// A secret is empty (R14).
    EmptySecret = 400 "empty_secret";

    /// An IP restriction names a policy that is not there.
    UnknownPolicy = 400 "ERR_NGROK_7007";
    /// An IP restriction names too many policies.
    TooManyPoliciesNamed = 400 "ERR_NGROK_7013";
    /// An IP restriction names no policy.
    NoPolicyNamed = 400 "ERR_NGROK_7025";
    /// Too many headers in a module.
    TooManyHeaders = 400 "ERR_NGROK_7015";
    /// Not a header name.
    HeaderName = 400 "ERR_NGROK_7023";
    /// Not a header value.
    HeaderValue = 400 "ERR_NGROK_7024";
    /// A header value with an expression, which this edge does not enforce yet.
    HeaderExpression = 400 "header_expression_not_enforced";
    /// A header that must not be changed, or `host` removed without a replacement.
    HeaderForbidden = 400 "ERR_NGROK_7164";

    /// A route names a backend that is not there.
    UnknownBackend = 400 "ERR_NGROK_6501";
    /// Something refers to the backend.
    BackendInUse = 400 "ERR_NGROK_6502";
    /// A backend's description is too long.
    BackendDescription = 400 "ERR_NGROK_6503";
    /// A backend's metadata are too long.
    BackendMetadata = 400 "ERR_NGROK_6504";
    /// Not an address `host:port`.
    BackendAddress = 400 "ERR_NGROK_6505";
    /// Too many labels.
    TooManyLabels = 400 "ERR_NGROK_6508";
    /// A label's key is empty or too long.
    LabelKey = 400 "ERR_NGROK_6509";
    /// A label's value is too long.
    LabelValue = 400 "ERR_NGROK_6510";
    /// No such backend.
    BackendNotFound = 404 "ERR_NGROK_6514";
    /// An HTTP response's body is too long.
    ResponseBody = 400 "ERR_NGROK_6516";
    /// Not a status that a response may have.
    ResponseStatus = 400 "ERR_NGROK_6517";
    /// An HTTP response's header name is invalid.
    ResponseHeaderName = 400 "ERR_NGROK_6522";
    /// An HTTP response's header value is invalid.
    ResponseHeaderValue = 400 "ERR_NGROK_6523";
    /// A label has a `=` in it.
    LabelEquals = 400 "ERR_NGROK_6531";
    /// Only a tunnel group has endpoints.
    NoEndpointsHere = 400 "endpoints_not_for_this_kind";
    /// Too many endpoints, or one that nobody can dial.
    EndpointsInvalid = 400 "endpoints_invalid";

    /// No such IP policy.
    PolicyNotFound = 404 "ERR_NGROK_1402";
    /// No such rule.
    RuleNotFound = 404 "ERR_NGROK_1404";
    /// Not a network (an IPv4-mapped one is written as IPv4, R16).
    RuleCidr = 400 "ERR_NGROK_1406";
    /// The policy has this network already.
    RuleDuplicate = 400 "ERR_NGROK_1408";
    /// The network has bits set behind its mask.
    RuleNotLowest = 400 "ERR_NGROK_1409";
    /// Too many IP policies.
    TooManyPolicies = 400 "ERR_NGROK_1410";
    /// Too many rules in the policy.
    TooManyRules = 400 "ERR_NGROK_1411";
    /// Something refers to the policy.
    PolicyInUse = 400 "ERR_NGROK_1420";

    /// No such certificate.
    CertificateNotFound = 404 "ERR_NGROK_1965";
    /// An edge names a certificate that is not there.
    UnknownCertificate = 400 "unknown_certificate";
    /// Something refers to the certificate.
    CertificateInUse = 400 "certificate_in_use";
    /// No certificate in it.
    CertificateInvalid = 400 "ERR_NGROK_1919";
    /// No private key in it.
    KeyInvalid = 400 "ERR_NGROK_1901";

    /// No such domain.
    DomainNotFound = 404 "domain_not_found";
    /// The domain is reserved under another id.
    DomainTaken = 400 "ERR_NGROK_413";
    /// It is below a domain that somebody owns, or above one.
    DomainConflict = 400 "ERR_NGROK_417";
    /// A domain's description is too long.
    DomainDescription = 400 "ERR_NGROK_420";
    /// A domain's metadata are too long.
    DomainMetadata = 400 "ERR_NGROK_421";
    /// An edge uses the domain.
    DomainInUse = 400 "ERR_NGROK_446";

    /// No such API key.
    KeyNotFound = 404 "key_not_found";
    /// The token is that of another key.
    TokenTaken = 400 "token_in_use";

    /// A description of another kind of object is too long.
    Description = 400 "description_too_long";
    /// Metadata of another kind of object are too long.
    Metadata = 400 "metadata_too_long";
    /// Too many objects of this kind.
    TooManyObjects = 400 "too_many_objects";
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// What a refusal is about, as far as can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The edge.
    pub edge: EdgeId,
    /// The first of its hosts.
    pub host: Option<HostPattern>,
    /// The route's match.
    pub place: Option<Match>,
}

/// A command that was not applied, not even in part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RefusedCommand {
    /// Which reason.
    pub code: RefusalCode,
    /// One sentence without a full stop; names no secret.
    pub message: String,
    /// Where.
    pub at: Option<Box<At>>,
}

impl RefusedCommand {
    /// A refusal without a place.
    #[must_use]
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            at: None,
        }
    }

    /// The same refusal, about this place, unless it knows one already.
    #[must_use]
    pub fn at(mut self, edge: &EdgeId, host: Option<&HostPattern>, place: Option<&Match>) -> Self {
        if self.at.is_none() {
            let at = At {
                edge: edge.clone(),
                host: host.cloned(),
                place: place.cloned(),
            };
            self.at = Some(Box::new(at));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_own_and_has_a_status_that_fits() {
        let mut seen = std::collections::BTreeSet::new();
        for code in RefusalCode::ALL {
            assert!(seen.insert(code.code()), "{code} stands for two reasons");
            assert!([400, 403, 404, 409].contains(&code.status()), "{code}");
        }
    }
}
