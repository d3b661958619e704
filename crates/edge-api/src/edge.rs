//! HTTPS edges on the wire.

use std::collections::{BTreeMap, BTreeSet};

use model::{host::HostPattern, id::CertificateId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::Resource,
    module::{
        ModuleName, TlsTermination, TlsTerminationAnswer, not_enforced, read_tls_termination,
    },
    route::{HttpsRoute, RouteReplacement},
    texts::Texts,
};

/// The one port of an HTTPS edge.
pub const HTTPS_PORT: u16 = 443;

/// What a POST or PATCH of an edge sets; what is absent is empty in a new edge and left as it is
/// in an old one. Nothing is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgePatch {
    /// The texts.
    pub texts: Texts,
    /// The hosts; replaces all of them.
    pub hosts: Option<BTreeSet<HostPattern>>,
    /// TLS termination; replaces the module.
    pub tls_termination: Option<TlsTermination>,
}

impl EdgePatch {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_create(mut members: Members) -> Result<Self, ApiError> {
        let patch = Self::take(&mut members)?;
        members.finish()?;
        Ok(patch)
    }

    /// Reads the body of a PATCH of the edge with this id.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_update(mut members: Members, id: &str) -> Result<Self, ApiError> {
        members.same_id("id", id)?;
        let patch = Self::take(&mut members)?;
        members.finish()?;
        Ok(patch)
    }

    fn take(members: &mut Members) -> Result<Self, ApiError> {
        let texts = Texts::take(members)?;
        let hosts = match members.texts("hostports")? {
            None => None,
            Some(texts) => Some(
                texts
                    .iter()
                    .map(|text| read_hostport(text))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let tls_termination = take_edge_modules(members)?;
        Ok(Self {
            texts,
            hosts,
            tls_termination,
        })
    }
}

/// A whole edge: what the extension `PUT /edges/https/{id}` writes in one step. What is absent is
/// not there afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeReplacement {
    /// The texts.
    pub texts: Texts,
    /// The hosts.
    pub hosts: BTreeSet<HostPattern>,
    /// TLS termination.
    pub tls_termination: Option<TlsTermination>,
    /// The certificate to show.
    pub certificate: Option<CertificateId>,
    /// Every route.
    pub routes: Vec<RouteReplacement>,
}

impl EdgeReplacement {
    /// Reads the body of a PUT of the edge with this id.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(mut members: Members, id: &str) -> Result<Self, ApiError> {
        members.same_id("id", id)?;
        let EdgePatch {
            texts,
            hosts,
            tls_termination,
        } = EdgePatch::take(&mut members)?;
        let certificate = match members
            .text("certificate_id")?
            .filter(|text| !text.is_empty())
        {
            None => None,
            Some(text) => Some(
                CertificateId::parse(&text)
                    .map_err(|error| ApiError::new(Code::IdInvalid, error.to_string()))?,
            ),
        };
        let routes = members.objects("routes")?.unwrap_or_default();
        members.finish()?;
        let routes = routes
            .into_iter()
            .map(RouteReplacement::read_nested)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            texts,
            hosts: hosts.unwrap_or_default(),
            tls_termination,
            certificate,
            routes,
        })
    }
}

/// Takes the edge-wide modules from a body. Only TLS termination is enforced.
fn take_edge_modules(members: &mut Members) -> Result<Option<TlsTermination>, ApiError> {
    let tls_termination = members
        .object("tls_termination")?
        .map(read_tls_termination)
        .transpose()?;
    for name in ModuleName::OF_EDGES
        .into_iter()
        .filter(|name| !name.is_readable())
    {
        if members.has(name.text()) {
            return Err(not_enforced(name));
        }
    }
    Ok(tls_termination)
}

/// Reads `host:port`.
///
/// # Errors
/// When it is not one, or the port is not 443.
pub fn read_hostport(text: &str) -> Result<HostPattern, ApiError> {
    let invalid = |why: &str| {
        ApiError::new(
            Code::HostportInvalid,
            format!("{text:?} is not host:port: {why}"),
        )
    };
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| invalid("there is no port"))?;
    let host = HostPattern::parse(host).map_err(|error| invalid(&error.to_string()))?;
    let fine = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(HTTPS_PORT) if fine => Ok(host),
        Ok(1..) if fine => Err(ApiError::new(
            Code::HostportPortNot443,
            format!("{text:?}: the port of an HTTPS edge is {HTTPS_PORT}"),
        )),
        Ok(_) | Err(_) => Err(ApiError::new(
            Code::HostportPortInvalid,
            format!("{port:?} is not a port from 1 to 65535"),
        )),
    }
}

/// `host:443`.
#[must_use]
pub fn hostport(host: &HostPattern) -> String {
    format!("{host}:{HTTPS_PORT}")
}

/// An HTTPS edge as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpsEdge {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// `host:443`, each.
    #[serde(default)]
    pub hostports: Vec<String>,
    /// TLS termination.
    pub tls_termination: Option<TlsTerminationAnswer>,
    /// Its routes.
    #[serde(default)]
    pub routes: Vec<HttpsRoute>,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: EdgeExtras,
    /// Modules that this edge does not enforce: null, each.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// What this edge says of an HTTPS edge beyond the common API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeExtras {
    /// The controller that owns it.
    pub controller: Option<String>,
    /// The generation; what a writer may expect.
    #[serde(default)]
    pub generation: u64,
    /// The certificate to show; null: one of the local authority.
    pub certificate_id: Option<String>,
}

impl HttpsEdge {
    /// The null members of what this edge does not enforce.
    #[must_use]
    pub fn unenforced() -> BTreeMap<String, Value> {
        ModuleName::OF_EDGES
            .into_iter()
            .filter(|name| !name.is_readable())
            .map(|name| (name.text().to_owned(), Value::Null))
            .collect()
    }
}

impl Resource for HttpsEdge {
    const PATH: &'static str = "/edges/https";
    const PLURAL: &'static str = "https_edges";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostports_are_read_strictly() {
        assert_eq!(
            read_hostport("A.Example.com:443").expect("fine").as_str(),
            "a.example.com"
        );
        assert_eq!(
            read_hostport("*.example.com:443").expect("fine").as_str(),
            "*.example.com"
        );
        for (text, code) in [
            ("a.example.com", Code::HostportInvalid),
            ("127.0.0.1:443", Code::HostportInvalid),
            ("[::1]:443", Code::HostportInvalid),
            ("a..b:443", Code::HostportInvalid),
            (":443", Code::HostportInvalid),
            ("a.example.com:", Code::HostportPortInvalid),
            ("a.example.com:0", Code::HostportPortInvalid),
            ("a.example.com:+443", Code::HostportPortInvalid),
            ("a.example.com:99999", Code::HostportPortInvalid),
            ("a.example.com:80", Code::HostportPortNot443),
        ] {
            assert_eq!(
                read_hostport(text).expect_err(text).code,
                Some(code.text()),
                "{text}"
            );
        }
    }
}
