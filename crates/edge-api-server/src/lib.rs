//! The edge API's server: axum over the store.
//!
//! A call passes the gate (`gate`: Host, number of calls at a time, an id in the log), is
//! authenticated and read (`call`), becomes one command, and the answer shows the state after it
//! (`views`). Nothing here decides what an edge may be: that is the state machine's.
//!
//! REST writes go one at a time (`Api::writing`): some read before they write (a PATCH that keeps
//! what it does not name), and no other may come in between. Commands of controllers carry the
//! generation that they expect instead.

mod answer;
mod api_keys;
mod backends;
mod call;
mod certificates;
mod collection;
mod domains;
mod edges;
mod extension;
mod gate;
mod ids;
mod ip_policies;
mod modules;
mod page;
mod routes;
mod seat;
mod serve;
mod views;
mod x509;

pub use serve::{ServeError, serve};

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};
use edge_state::capabilities::Capabilities;
use edge_store::Store;
use tokio::sync::{Mutex, Semaphore};

use crate::{
    api_keys::KEYS,
    certificates::CERTIFICATES,
    ip_policies::{POLICIES, RULES},
};

/// How the API is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// TLS; without it only loopback is served.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Host names besides addresses and `localhost` under which the API may be asked.
    pub names: Vec<String>,
    /// What the edge can do.
    pub capabilities: Capabilities,
    /// Whether a controller works in this process: then no other may raise the term (R19).
    pub own_controller: bool,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of a body that holds a whole edge or a command.
    pub whole_body_bytes_max: usize,
    /// Calls at the same time; more are told to come back.
    pub calls_max: usize,
    /// Connections at the same time; more wait.
    pub connections_max: usize,
    /// How long the head of a request, and a TLS handshake, may take. A connection that is idle
    /// for longer is closed.
    pub head_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long the edge may take to save a change.
    pub apply_timeout: Duration,
    /// How long calls may go on when the server is told to stop.
    pub drain_timeout: Duration,
}

impl Options {
    /// The defaults for an edge that can do this.
    #[must_use]
    pub const fn new(capabilities: Capabilities) -> Self {
        Self {
            tls: None,
            names: Vec::new(),
            capabilities,
            own_controller: false,
            body_bytes_max: 1 << 20,
            whole_body_bytes_max: 32 << 20,
            calls_max: 64,
            connections_max: 512,
            head_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            apply_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(5),
        }
    }
}

/// What every call can reach.
#[derive(Clone)]
pub(crate) struct Api(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) options: Options,
    /// Whether callers come over TLS, for the addresses in answers.
    pub(crate) scheme: &'static str,
    /// Held by a REST write from its first look at the state to its answer.
    pub(crate) writing: Mutex<()>,
    pub(crate) calls: Semaphore,
    pub(crate) seat: seat::Seat,
}

impl std::ops::Deref for Api {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Api {
    fn new(store: Store, options: Options) -> Self {
        let scheme = if options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let calls = Semaphore::new(options.calls_max);
        Self(Arc::new(Inner {
            store,
            options,
            scheme,
            writing: Mutex::new(()),
            calls,
            seat: seat::Seat::default(),
        }))
    }
}

/// Every path and verb there is. Anything else is "not found", a wrong verb too.
fn router(api: Api) -> Router {
    Router::new()
        .route("/edges/https", get(edges::list).post(edges::create))
        .route(
            "/edges/https/{id}",
            get(edges::get)
                .patch(edges::update)
                .put(edges::replace)
                .delete(edges::delete),
        )
        .route(
            "/edges/https/{id}/{module}",
            get(modules::get_of_edge)
                .put(modules::put_of_edge)
                .delete(modules::delete_of_edge),
        )
        .route(
            "/edges/https/{id}/routes",
            axum::routing::post(routes::create),
        )
        .route(
            "/edges/https/{edge_id}/routes/{id}",
            get(routes::get)
                .patch(routes::update)
                .put(routes::replace)
                .delete(routes::delete),
        )
        .route(
            "/edges/https/{edge_id}/routes/{id}/{module}",
            get(modules::get_of_route)
                .put(modules::put_of_route)
                .delete(modules::delete_of_route),
        )
        .route(
            "/backends/{kind}",
            get(backends::list).post(backends::create),
        )
        .route(
            "/backends/{kind}/{id}",
            get(backends::get)
                .patch(backends::update)
                .delete(backends::delete),
        )
        .route(
            "/backends/{kind}/{id}/endpoints",
            axum::routing::put(backends::set_endpoints),
        )
        .route(
            "/reserved_domains",
            get(domains::list).post(domains::create),
        )
        .route(
            "/reserved_domains/{id}",
            get(domains::get)
                .patch(domains::update)
                .delete(domains::delete),
        )
        .route(
            "/reserved_domains/{id}/namespace",
            axum::routing::put(domains::assign).delete(domains::release),
        )
        .merge(CERTIFICATES.router(certificates::create))
        .merge(POLICIES.router(ip_policies::create))
        .merge(RULES.router(ip_policies::create_rule))
        .merge(KEYS.router(api_keys::create))
        .route(
            edge_api::extension::CAPABILITIES_PATH,
            get(extension::capabilities),
        )
        .route(edge_api::extension::STATE_PATH, get(extension::state))
        .route(
            edge_api::extension::COMMANDS_PATH,
            axum::routing::post(extension::command),
        )
        .fallback(gate::no_such_call)
        .method_not_allowed_fallback(gate::no_such_call)
        .layer(axum::middleware::from_fn_with_state(
            api.clone(),
            gate::gate,
        ))
        .with_state(api)
}
