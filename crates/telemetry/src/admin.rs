//! The admin listener: `/metrics`, `/livez`, `/readyz`, `/status`.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use model::status::Status;
use tokio::{net::TcpListener, sync::watch};

use crate::metrics::Metrics;

/// Whether a request may read `/status`, from its headers.
pub type Authorise = Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// Whether the process can do its work at this moment.
pub type Ready = Arc<dyn Fn() -> bool + Send + Sync>;

/// What the admin listener shows.
#[derive(Clone)]
pub struct Admin {
    /// The process's metrics.
    pub metrics: Arc<Metrics>,
    /// True once the first complete table is served, and not while the process cannot do its work.
    pub ready: Ready,
    /// The controller's status, where there is a controller.
    pub status: Option<watch::Receiver<Arc<Status>>>,
    /// Who may read the status where the listener is not on loopback.
    pub authorise: Option<Authorise>,
    /// Host names besides addresses and `localhost` under which the listener may be asked.
    pub names: Vec<String>,
}

/// Whether a Host header names an address, `localhost`, or one of `names`. Anything else is a page
/// in somebody's browser whose name was pointed at this machine (DNS rebinding).
#[must_use]
pub fn host_allowed(headers: &HeaderMap, names: &[String]) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((inner, port)) => (inner, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_is_one = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.parse::<u16>().is_ok());
    if !port_is_one {
        return false;
    }
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Serves until `shutdown` turns true or its sender goes away.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    admin: Admin,
    mut shutdown: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let loopback = listener.local_addr()?.ip().is_loopback();
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route(
            "/status",
            get(move |state, headers| status(loopback, state, headers)),
        )
        .layer(axum::middleware::from_fn_with_state(admin.clone(), guard))
        .with_state(admin);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            let _ended = shutdown.wait_for(|stop| *stop).await;
        })
        .await
}

async fn guard(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    if host_allowed(request.headers(), &admin.names) {
        next.run(request).await
    } else {
        let text = "this listener answers only to an address, localhost, or a configured name\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], admin.metrics.render()).into_response()
}

async fn ready(State(admin): State<Admin>) -> Response {
    if (admin.ready)() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response()
    }
}

async fn status(loopback: bool, State(admin): State<Admin>, headers: HeaderMap) -> Response {
    if !loopback
        && !admin
            .authorise
            .as_ref()
            .is_some_and(|allowed| allowed(&headers))
    {
        return (
            StatusCode::FORBIDDEN,
            "an API key with the role read is needed\n",
        )
            .into_response();
    }
    let Some(status) = &admin.status else {
        let text = "no controller runs in this process; ask the controller's --admin\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let current = status.borrow().clone();
    match serde_json::to_string_pretty(&*current) {
        Ok(text) => (
            [(header::CONTENT_TYPE, "application/json")],
            format!("{text}\n"),
        )
            .into_response(),
        Err(error) => {
            tracing::error!(%error, "the status cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_known_names_are_hosts_of_this_listener() {
        let allowed = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().expect("a header value"));
            host_allowed(&headers, &["Edge.internal".to_owned()])
        };
        for host in [
            "127.0.0.1:4042",
            "[::1]:4042",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "edge.internal:4042",
        ] {
            assert!(allowed(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:4042",
            "[::1]x",
            "[::1",
            "127.0.0.1.evil.example",
            "127.0.0.1:80@evil.example",
            "localhost:",
            "localhost:x",
        ] {
            assert!(!allowed(host), "{host}");
        }
        assert!(!host_allowed(&HeaderMap::new(), &[]));
    }
}
