//! Reserved domains on the wire.

use model::host::HostPattern;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::{Reference, Resource},
    module::not_available,
    texts::Texts,
};

/// The regions that old clients may still name; each means nothing here.
const REGIONS: [&str; 7] = ["au", "eu", "ap", "us", "jp", "in", "sa"];

/// Reads the body of a POST: the host and the texts.
///
/// # Errors
/// When it is not one, or asks for what this edge has not: certificates by a public authority,
/// points of presence.
pub fn read_create(mut members: Members) -> Result<(HostPattern, Texts), ApiError> {
    let texts = Texts::take(&mut members)?;
    let name = members.text("domain")?.unwrap_or_default();
    take_unavailable(&mut members)?;
    members.finish()?;
    let host = HostPattern::parse(&name).map_err(|error| {
        ApiError::new(Code::DomainInvalid, format!("domain is {name:?}: {error}"))
    })?;
    Ok((host, texts))
}

/// Reads the body of a PATCH of the domain with this id and name.
///
/// # Errors
/// When it is not one, or changes nothing.
pub fn read_update(mut members: Members, id: &str, host: &HostPattern) -> Result<Texts, ApiError> {
    members.same_id("id", id)?;
    members.same_id("domain", host.as_str())?;
    let texts = Texts::take(&mut members)?;
    take_unavailable(&mut members)?;
    members.finish()?;
    if texts.is_empty() {
        return Err(ApiError::new(
            Code::DomainUpdateEmpty,
            "the update has no value",
        ));
    }
    Ok(texts)
}

fn take_unavailable(members: &mut Members) -> Result<(), ApiError> {
    let region = members.text("region")?.unwrap_or_default();
    if !region.is_empty() && !REGIONS.contains(&region.as_str()) {
        return Err(ApiError::new(
            Code::RegionInvalid,
            format!("{region:?} is not a region"),
        ));
    }
    if members
        .text("certificate_id")?
        .is_some_and(|id| !id.is_empty())
    {
        return Err(not_available(
            "certificate_id",
            "an edge names its certificate, not a domain",
        ));
    }
    if members.has("certificate_management_policy") {
        return Err(not_available(
            "certificate_management_policy",
            "certificates are uploaded, or made by the edge's local authority",
        ));
    }
    if members
        .objects("resolves_to")?
        .is_some_and(|list| !list.is_empty())
    {
        return Err(not_available("resolves_to", "it has no points of presence"));
    }
    Ok(())
}

/// A reserved domain as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedDomain {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was reserved, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// The host or wildcard.
    pub domain: String,
    /// Always empty.
    #[serde(default)]
    pub region: String,
    /// Always null: names resolve to this edge however its operator arranges it.
    pub cname_target: Option<String>,
    /// Always null.
    pub certificate: Option<Reference>,
    /// Always null.
    pub certificate_management_policy: Option<Value>,
    /// Always null.
    pub certificate_management_status: Option<Value>,
    /// Always null.
    pub acme_challenge_cname_target: Option<String>,
    /// Always empty.
    #[serde(default)]
    pub resolves_to: Vec<Value>,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: DomainExtras,
}

/// What this edge says of a domain beyond the common API: who owns it (R20).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainExtras {
    /// The controller that made it.
    pub controller: Option<String>,
    /// The namespace that owns it.
    pub namespace: Option<String>,
    /// When it was last seen to have no declaration any more, RFC 3339.
    pub undeclared_since: Option<String>,
}

impl Resource for ReservedDomain {
    const PATH: &'static str = "/reserved_domains";
    const PLURAL: &'static str = "reserved_domains";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_as_the_python_client_sends_it_and_what_is_refused() {
        let read = |body: &str| read_create(Members::read(body.as_bytes()).expect("an object"));
        let body = r#"{"domain":"A.example.com","region":"","description":"","metadata":"","resolves_to":[]}"#;
        assert_eq!(read(body).expect("fine").0.as_str(), "a.example.com");
        for (body, code) in [
            ("{}", "ERR_NGROK_402"),
            (r#"{"domain":"a.*.b"}"#, "ERR_NGROK_402"),
            (r#"{"domain":"a.b","region":"moon"}"#, "ERR_NGROK_400"),
            (
                r#"{"domain":"a.b","certificate_id":"cert_x"}"#,
                "not_available_at_this_edge",
            ),
            (
                r#"{"domain":"a.b","certificate_management_policy":{}}"#,
                "not_available_at_this_edge",
            ),
            (
                r#"{"domain":"a.b","resolves_to":[{"value":"eu"}]}"#,
                "not_available_at_this_edge",
            ),
            (r#"{"domain":"a.b","name":"a"}"#, "ERR_NGROK_214"),
        ] {
            assert_eq!(read(body).expect_err(body).code, Some(code), "{body}");
        }
    }
}
