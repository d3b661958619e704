//! Backends on the wire: tunnel groups, fixed answers and static addresses.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::backend::BackendKind;
use serde::{Deserialize, Serialize};

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::{Reference, Resource},
    module::not_available,
    texts::Texts,
};

/// The kinds of backend that this edge has, as paths name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `/backends/tunnel_group`.
    TunnelGroup,
    /// `/backends/http_response`.
    HttpResponse,
    /// `/backends/static`.
    Static,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::TunnelGroup, Self::HttpResponse, Self::Static];

    /// The last part of the collection's path.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::TunnelGroup => "tunnel_group",
            Self::HttpResponse => "http_response",
            Self::Static => "static",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.text() == text)
    }

    /// The kind of this backend.
    #[must_use]
    pub const fn of(backend: &BackendKind) -> Self {
        match backend {
            BackendKind::TunnelGroup { .. } => Self::TunnelGroup,
            BackendKind::HttpResponse { .. } => Self::HttpResponse,
            BackendKind::Static { .. } => Self::Static,
        }
    }
}

/// What a POST or PATCH of a backend sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendWrite {
    /// The texts.
    pub texts: Texts,
    /// The content after the write; absent where a PATCH leaves it.
    pub kind: Option<BackendKind>,
}

impl BackendWrite {
    /// Reads the body of a POST (`old` absent) or of a PATCH of `old`, whose id is `id`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(
        mut members: Members,
        kind: Kind,
        old: Option<(&str, &BackendKind)>,
    ) -> Result<Self, ApiError> {
        if let Some((id, _)) = old {
            members.same_id("id", id)?;
        }
        let old = old.map(|(_, old)| old);
        let texts = Texts::take(&mut members)?;
        let kind = match kind {
            Kind::TunnelGroup => take_labels(&mut members, old)?,
            Kind::HttpResponse => take_response(&mut members, old)?,
            Kind::Static => take_address(&mut members, old)?,
        };
        members.finish()?;
        Ok(Self { texts, kind })
    }
}

/// Labels of a tunnel group. An empty selector would match every tunnel there is, so a new group
/// needs one; in a PATCH it counts as absent, because the official Python client always sends it.
fn take_labels(
    members: &mut Members,
    old: Option<&BackendKind>,
) -> Result<Option<BackendKind>, ApiError> {
    let pairs = members.pairs("labels")?.unwrap_or_default();
    if pairs.is_empty() {
        return match old {
            Some(_) => Ok(None),
            None => Err(ApiError::new(
                Code::LabelsMissing,
                "labels must name at least one label",
            )),
        };
    }
    Ok(Some(BackendKind::TunnelGroup {
        labels: pairs.into_iter().collect(),
    }))
}

/// A fixed answer: what a PATCH leaves out stays, but `headers: {}` clears them.
fn take_response(
    members: &mut Members,
    old: Option<&BackendKind>,
) -> Result<Option<BackendKind>, ApiError> {
    let body = members.text("body")?;
    let headers = members.pairs("headers")?;
    let status = members.number("status_code")?.filter(|status| *status != 0);
    if old.is_some() && body.is_none() && headers.is_none() && status.is_none() {
        return Ok(None);
    }
    let (old_status, old_headers, old_body) = match old {
        Some(BackendKind::HttpResponse {
            status,
            headers,
            body,
        }) => (*status, headers.clone(), body.clone()),
        Some(BackendKind::TunnelGroup { .. } | BackendKind::Static { .. }) | None => {
            (200, BTreeMap::new(), String::new())
        }
    };
    let status = match status {
        None => old_status,
        Some(status) => u16::try_from(status).map_err(|_| {
            ApiError::new(
                Code::ResponseStatusInvalid,
                format!("{status} is not an HTTP status"),
            )
        })?,
    };
    let headers = match headers {
        None => old_headers,
        Some(pairs) => {
            let mut headers = BTreeMap::new();
            for (name, value) in pairs {
                let name = name.to_ascii_lowercase();
                if headers.insert(name.clone(), value).is_some() {
                    return Err(ApiError::new(
                        Code::HeaderTwice,
                        format!("{name} stands twice, in different cases"),
                    ));
                }
            }
            headers
        }
    };
    Ok(Some(BackendKind::HttpResponse {
        status,
        headers,
        body: body.unwrap_or(old_body),
    }))
}

/// A static address. TLS towards it would be a promise that this edge does not keep, so it is
/// refused rather than dialled in clear.
fn take_address(
    members: &mut Members,
    old: Option<&BackendKind>,
) -> Result<Option<BackendKind>, ApiError> {
    let address = members.text("address")?.filter(|text| !text.is_empty());
    let tls = match members.object("tls")? {
        None => false,
        Some(mut tls) => {
            let enabled = tls.flag("enabled")?.unwrap_or(false);
            tls.finish()?;
            enabled
        }
    };
    if tls {
        return Err(not_available(
            "tls",
            "it does not speak TLS to backends yet",
        ));
    }
    match (address, old) {
        (Some(address), _) => Ok(Some(BackendKind::Static { address })),
        (None, Some(_)) => Ok(None),
        (None, None) => Err(ApiError::new(
            Code::AddressMissing,
            "address must be given, host:port",
        )),
    }
}

/// Reads the body of the extension `PUT /backends/tunnel_group/{id}/endpoints`.
///
/// # Errors
/// When it is not one.
pub fn read_endpoints(mut members: Members) -> Result<BTreeSet<SocketAddr>, ApiError> {
    let texts = members.texts("endpoints")?;
    members.finish()?;
    let texts = texts.ok_or_else(|| ApiError::invalid("endpoints", "a list of addresses"))?;
    texts
        .iter()
        .map(|text| {
            text.parse()
                .map(model::address::canonical_socket)
                .map_err(|_| {
                    ApiError::invalid("endpoints", &format!("a list of IP:PORT; {text:?} is none"))
                })
        })
        .collect()
}

/// What this edge says of a backend beyond the common API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendExtras {
    /// The controller that owns it.
    pub controller: Option<String>,
    /// `NAMESPACE/NAME:PORT` of the Service it stands for.
    pub service: Option<String>,
    /// Where it is reached at the moment.
    #[serde(default)]
    pub endpoints: BTreeSet<SocketAddr>,
}

/// A tunnel group as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelGroup {
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
    /// The labels that a tunnel must have.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The tunnels that have them.
    #[serde(default)]
    pub tunnels: Vec<Reference>,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: BackendExtras,
}

impl Resource for TunnelGroup {
    const PATH: &'static str = "/backends/tunnel_group";
    const PLURAL: &'static str = "backends";
}

/// A fixed answer as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResponse {
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
    /// The body.
    #[serde(default)]
    pub body: String,
    /// Lower-case name to value.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The status.
    pub status_code: u16,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: BackendExtras,
}

impl Resource for HttpResponse {
    const PATH: &'static str = "/backends/http_response";
    const PLURAL: &'static str = "backends";
}

/// TLS towards a static address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticTls {
    /// Whether it is spoken.
    pub enabled: bool,
}

/// A static address as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticAddress {
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
    /// `host:port`.
    pub address: String,
    /// TLS towards it: never, at this edge.
    #[serde(default)]
    pub tls: StaticTls,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: BackendExtras,
}

impl Resource for StaticAddress {
    const PATH: &'static str = "/backends/static";
    const PLURAL: &'static str = "backends";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        kind: Kind,
        old: Option<&BackendKind>,
        body: &str,
    ) -> Result<Option<BackendKind>, Option<&'static str>> {
        let members = Members::read(body.as_bytes()).expect("an object");
        BackendWrite::read(members, kind, old.map(|old| ("id", old)))
            .map(|write| write.kind)
            .map_err(|error| error.code)
    }

    #[test]
    fn what_a_patch_leaves_out_stays() {
        let group = BackendKind::TunnelGroup {
            labels: BTreeMap::from([("a".into(), "b".into())]),
        };
        assert_eq!(
            read(
                Kind::TunnelGroup,
                Some(&group),
                r#"{"metadata":"z","labels":{}}"#
            ),
            Ok(None)
        );
        assert_eq!(
            read(Kind::TunnelGroup, None, "{}"),
            Err(Some("ERR_NGROK_6508"))
        );

        let fixed = Kind::HttpResponse;
        let old = read(fixed, None, r#"{"body":"hi","headers":{"X-A":"1"}}"#)
            .expect("fine")
            .expect("there");
        let new = read(fixed, Some(&old), r#"{"status_code":404,"headers":{}}"#)
            .expect("fine")
            .expect("there");
        assert_eq!(
            new,
            BackendKind::HttpResponse {
                status: 404,
                headers: BTreeMap::new(),
                body: "hi".into()
            }
        );
        assert_eq!(
            read(fixed, None, r#"{"headers":{"a":"1","A":"2"}}"#),
            Err(Some("ERR_NGROK_7069"))
        );

        let address = BackendKind::Static {
            address: "10.0.0.1:80".into(),
        };
        assert_eq!(
            read(Kind::Static, Some(&address), r#"{"address":"","tls":{}}"#),
            Ok(None)
        );
        assert_eq!(
            read(Kind::Static, Some(&address), r#"{"tls":{"enabled":true}}"#),
            Err(Some("not_available_at_this_edge")),
        );
        assert_eq!(read(Kind::Static, None, "{}"), Err(Some("ERR_NGROK_6505")));
    }
}
