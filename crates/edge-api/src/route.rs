//! Routes of HTTPS edges on the wire.

use std::collections::BTreeMap;

use model::{
    id::{IpPolicyId, RouteId},
    module::Modules,
    place::{Match, MatchType},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::{ApiError, Code},
    json::Members,
    module::{
        BackendAnswer, BackendModule, HeadersAnswer, IpRestrictionAnswer, ModuleName, not_enforced,
        read_backend, read_headers, read_ip_restriction,
    },
    texts::Texts,
};

/// What a POST or PATCH of a route sets; what is absent is not there on a new route and left as
/// it is on an old one. Nothing is removed: that is a call of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePatch {
    /// The texts.
    pub texts: Texts,
    /// How the path is compared.
    pub match_type: Option<MatchType>,
    /// The path to match, as written.
    pub path: Option<String>,
    /// The modules.
    pub modules: Modules<IpPolicyId>,
    /// The backend.
    pub backend: Option<BackendModule>,
}

/// A whole new route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteReplacement {
    /// The id, where the writer names one.
    pub id: Option<RouteId>,
    /// What it matches.
    pub place: Match,
    /// Texts, modules, backend.
    pub content: RoutePatch,
}

impl RouteReplacement {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_create(mut members: Members, edge_id: &str) -> Result<Self, ApiError> {
        members.same_id("edge_id", edge_id)?;
        let content = RoutePatch::take(&mut members)?;
        members.finish()?;
        Self::of(None, content)
    }

    /// Reads the body of the extension `PUT …/routes/{id}`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_put(mut members: Members, edge_id: &str, id: &str) -> Result<Self, ApiError> {
        members.same_id("edge_id", edge_id)?;
        members.same_id("id", id)?;
        let content = RoutePatch::take(&mut members)?;
        members.finish()?;
        Self::of(None, content)
    }

    /// Reads a route within a whole edge.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_nested(mut members: Members) -> Result<Self, ApiError> {
        let id = match members.text("id")?.filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(
                RouteId::parse(&text)
                    .map_err(|error| ApiError::new(Code::IdInvalid, error.to_string()))?,
            ),
        };
        let content = RoutePatch::take(&mut members)?;
        members.finish()?;
        Self::of(id, content)
    }

    fn of(id: Option<RouteId>, mut content: RoutePatch) -> Result<Self, ApiError> {
        let match_type = content
            .match_type
            .take()
            .ok_or_else(|| ApiError::new(Code::MatchTypeInvalid, "match_type must be given"))?;
        let path = content
            .path
            .take()
            .ok_or_else(|| ApiError::new(Code::MatchMissing, "match must be given"))?;
        Ok(Self {
            id,
            place: place(match_type, &path)?,
            content,
        })
    }
}

impl RoutePatch {
    /// Reads the body of a PATCH of this route.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read_update(mut members: Members, edge_id: &str, id: &str) -> Result<Self, ApiError> {
        members.same_id("edge_id", edge_id)?;
        members.same_id("id", id)?;
        let patch = Self::take(&mut members)?;
        members.finish()?;
        let Self {
            texts,
            match_type,
            path,
            modules,
            backend,
        } = patch;
        Ok(Self {
            texts: texts.empty_is_absent(),
            match_type,
            path,
            modules,
            backend,
        })
    }

    /// The match after this patch of a route that has `old`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn place_after(&self, old: &Match) -> Result<Option<Match>, ApiError> {
        if self.match_type.is_none() && self.path.is_none() {
            return Ok(None);
        }
        let match_type = self.match_type.unwrap_or(old.match_type);
        place(match_type, self.path.as_deref().unwrap_or(&old.path)).map(Some)
    }

    fn take(members: &mut Members) -> Result<Self, ApiError> {
        let texts = Texts::take(members)?;
        let match_type = members.text("match_type")?.filter(|text| !text.is_empty());
        let match_type = match_type.as_deref().map(read_match_type).transpose()?;
        let path = members.text("match")?.filter(|text| !text.is_empty());
        let backend = members.object("backend")?.map(read_backend).transpose()?;
        let modules = Modules {
            ip_restriction: members
                .object("ip_restriction")?
                .map(read_ip_restriction)
                .transpose()?,
            request_headers: members
                .object("request_headers")?
                .map(read_headers)
                .transpose()?,
            response_headers: members
                .object("response_headers")?
                .map(read_headers)
                .transpose()?,
            user_agent_filter: None,
            webhook_verification: None,
            oauth: None,
            oidc: None,
            saml: None,
            traffic_policy: None,
            circuit_breaker: None,
            websocket_tcp_converter: None,
            compression: None,
        };
        for name in ModuleName::OF_ROUTES
            .into_iter()
            .filter(|name| !name.is_readable())
        {
            if members.has(name.text()) {
                return Err(not_enforced(name));
            }
        }
        Ok(Self {
            texts,
            match_type,
            path,
            modules,
            backend,
        })
    }
}

fn read_match_type(text: &str) -> Result<MatchType, ApiError> {
    [
        MatchType::Exact,
        MatchType::StringPrefix,
        MatchType::ElementPrefix,
    ]
    .into_iter()
    .find(|match_type| match_type.wire() == text)
    .ok_or_else(|| {
        ApiError::new(
            Code::MatchTypeInvalid,
            format!(
                "match_type is {text:?}; accepted: exact_path, path_prefix, path_element_prefix"
            ),
        )
    })
}

/// A match, its path normalised as request paths are (R16).
fn place(match_type: MatchType, path: &str) -> Result<Match, ApiError> {
    let normalised = routing::path::normalise_declared(path).map_err(|problem| {
        ApiError::new(Code::MatchInvalid, format!("match is {path:?}: {problem}"))
    })?;
    Ok(Match::new(match_type, &normalised))
}

/// A route as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpsRoute {
    /// Its edge.
    pub edge_id: String,
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// `exact_path`, `path_prefix` or `path_element_prefix`.
    pub match_type: String,
    /// The normalised path.
    #[serde(rename = "match")]
    pub path: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// The backend; null: the route is closed.
    pub backend: Option<BackendAnswer>,
    /// Allowed and denied addresses.
    pub ip_restriction: Option<IpRestrictionAnswer>,
    /// Changes of request headers.
    pub request_headers: Option<HeadersAnswer>,
    /// Changes of response headers.
    pub response_headers: Option<HeadersAnswer>,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: RouteExtras,
    /// Modules that this edge does not enforce: null, each.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// What this edge says of a route beyond the common API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteExtras {
    /// The generation.
    #[serde(default)]
    pub generation: u64,
    /// Where its controller has it: `open`, `held`, `lost`, `closed`, `removing`; null for routes
    /// that no controller owns.
    pub phase: Option<String>,
    /// The object that declares it.
    pub owner: Option<String>,
}

impl HttpsRoute {
    /// The null members of what this edge does not enforce.
    #[must_use]
    pub fn unenforced() -> BTreeMap<String, Value> {
        ModuleName::OF_ROUTES
            .into_iter()
            .filter(|name| !name.is_readable())
            .map(|name| (name.text().to_owned(), Value::Null))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(body: &str) -> Members {
        Members::read(body.as_bytes()).expect("an object")
    }

    #[test]
    fn a_patch_as_the_python_client_sends_it_changes_the_backend_alone() {
        let body = r#"{"match_type":"","match":"","description":"","metadata":"",
            "backend":{"backend_id":"bkdtg_000000000000000000000000001"}}"#;
        let patch = RoutePatch::read_update(members(body), "e", "r").expect("fine");
        assert_eq!(
            RoutePatch {
                backend: None,
                ..patch.clone()
            },
            RoutePatch::default(),
            "nothing but the backend",
        );
        assert!(patch.backend.is_some_and(|backend| backend.enabled));
    }

    #[test]
    fn nulls_and_repeated_ids_are_harmless_and_other_ids_are_not() {
        let body = r#"{"id":"r","edge_id":"e","oauth":null,"backend":null,"match":null}"#;
        assert_eq!(
            RoutePatch::read_update(members(body), "e", "r"),
            Ok(RoutePatch::default())
        );
        let error = RoutePatch::read_update(members(r#"{"edge_id":"x"}"#), "e", "r");
        assert_eq!(error.expect_err("refused").code, Some("ERR_NGROK_7110"));
    }

    #[test]
    fn every_module_that_cannot_be_read_is_refused_by_name_even_if_disabled() {
        for name in ModuleName::OF_ROUTES
            .into_iter()
            .filter(|name| !name.is_readable())
        {
            let body = format!(r#"{{"{}":{{"enabled":false}}}}"#, name.text());
            let error = RoutePatch::read_update(members(&body), "e", "r").expect_err("refused");
            assert_eq!(error.code, Some("module_not_enforced"));
            assert_eq!(
                error.details.get("module").map(String::as_str),
                Some(name.text())
            );
            assert!(error.message.contains(name.text()));
        }
    }

    #[test]
    fn a_new_route_needs_a_match_and_its_path_is_normalised() {
        let read = |body| RouteReplacement::read_create(members(body), "e");
        let route =
            read(r#"{"match_type":"path_element_prefix","match":"/a/./b/"}"#).expect("fine");
        assert_eq!(route.place, Match::new(MatchType::ElementPrefix, "/a/b"));
        for (body, code) in [
            (r#"{"match":"/"}"#, "ERR_NGROK_7130"),
            (r#"{"match_type":"regex","match":"/"}"#, "ERR_NGROK_7130"),
            (r#"{"match_type":"exact_path"}"#, "ERR_NGROK_7123"),
            (
                r#"{"match_type":"exact_path","match":""}"#,
                "ERR_NGROK_7123",
            ),
            (
                r#"{"match_type":"exact_path","match":"a.example.com"}"#,
                "ERR_NGROK_7131",
            ),
            (
                r#"{"match_type":"exact_path","match":"/","jwt_validation":{}}"#,
                "ERR_NGROK_214",
            ),
            (
                r#"{"match_type":"exact_path","match":"/","backend":{"backend":{}}}"#,
                "ERR_NGROK_214",
            ),
            (
                r#"{"match_type":"exact_path","match":"/","backend":{}}"#,
                "ERR_NGROK_242",
            ),
        ] {
            assert_eq!(read(body).expect_err(body).code, Some(code), "{body}");
        }
    }
}
