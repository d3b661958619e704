//! The edge API as commands for people use it: whole collections, owners of domains, API keys.

use controller::ports::EdgeError;
use edge_api::{
    api_key::ApiKey,
    domain::ReservedDomain,
    list::{LIMIT_MAX, Page, Resource},
};
use http::{HeaderMap, Method};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    classify::{unavailable, unreadable},
    connection::{Call, ConnectOptions, TrustError},
    http::HttpEdge,
    key::KeySource,
};

/// Pages of one collection; more means that the edge leads in circles.
const PAGES_MAX: usize = 10_000;

/// A client of the edge API.
#[derive(Debug)]
pub struct RestClient(HttpEdge);

impl RestClient {
    /// A client of an edge that is reached so, with this key. Nothing is sent yet.
    ///
    /// # Errors
    /// When it cannot be known whom to trust.
    pub fn new(options: ConnectOptions, key: KeySource) -> Result<Self, TrustError> {
        HttpEdge::new(options, key).map(Self)
    }

    /// Everything in a collection, newest first, page by page.
    ///
    /// # Errors
    /// As every call.
    pub async fn all<T: Resource>(&self) -> Result<Vec<T>, EdgeError> {
        let mut items = Vec::new();
        let mut target = format!("{}?limit={LIMIT_MAX}", T::PATH);
        for _ in 0..PAGES_MAX {
            let body: Value = self.0.get(&target, "a page").await?;
            let page = Page::<T>::from_json(body).map_err(|_| unreadable("a page"))?;
            items.extend(page.items);
            let Some(next) = page.next_page_uri else {
                return Ok(items);
            };
            target =
                next_target(&next, T::PATH).ok_or_else(|| unreadable("the address of a page"))?;
        }
        Err(unreadable("the end of a collection"))
    }

    /// One thing by its id.
    ///
    /// # Errors
    /// As every call.
    pub async fn one<T: Resource>(&self, id: &str) -> Result<T, EdgeError> {
        self.0.get(&format!("{}/{id}", T::PATH), "the answer").await
    }

    /// Gives a host to a namespace (R20).
    ///
    /// # Errors
    /// As every call.
    pub async fn assign_domain(
        &self,
        id: &str,
        namespace: &str,
    ) -> Result<ReservedDomain, EdgeError> {
        let target = format!("{}/{id}/namespace", ReservedDomain::PATH);
        self.write(Method::PUT, target, &json!({ "namespace": namespace }))
            .await
    }

    /// Takes a host from its namespace; the next that declares it has it (R20).
    ///
    /// # Errors
    /// As every call.
    pub async fn release_domain(&self, id: &str) -> Result<(), EdgeError> {
        self.delete(format!("{}/{id}/namespace", ReservedDomain::PATH))
            .await
    }

    /// Makes an API key of this role. The answer holds it, this one time.
    ///
    /// # Errors
    /// As every call.
    pub async fn create_key(&self, role: &str, description: &str) -> Result<ApiKey, EdgeError> {
        let body = json!({ "role": role, "description": description });
        self.write(Method::POST, ApiKey::PATH.to_owned(), &body)
            .await
    }

    /// Deletes an API key: it is refused from now on.
    ///
    /// # Errors
    /// As every call.
    pub async fn delete_key(&self, id: &str) -> Result<(), EdgeError> {
        self.delete(format!("{}/{id}", ApiKey::PATH)).await
    }

    async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        target: String,
        body: &impl Serialize,
    ) -> Result<T, EdgeError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            unavailable(format!("a body cannot be written: {error}"), false, None)
        })?;
        let call = Call {
            method,
            target,
            headers: HeaderMap::new(),
            body: Some(body.into()),
        };
        let body = self.0.call(call).await?;
        serde_json::from_slice(&body).map_err(|_| unreadable("the answer"))
    }

    async fn delete(&self, target: String) -> Result<(), EdgeError> {
        let call = Call {
            method: Method::DELETE,
            target,
            headers: HeaderMap::new(),
            body: None,
        };
        self.0.call(call).await.map(|_empty| ())
    }
}

/// Path and query of the next page, if it is one of the same collection. The rest of the address
/// is not looked at: the key goes nowhere but to the edge it is for.
fn next_target(uri: &str, path: &str) -> Option<String> {
    let uri: http::Uri = uri.parse().ok()?;
    let target = uri.path_and_query()?;
    (target.path() == path).then(|| target.as_str().to_owned())
}
