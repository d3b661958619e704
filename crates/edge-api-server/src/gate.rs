//! What every call passes, on the way in and on the way out.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use edge_api::{
    error::{ApiError, Code},
    extension::OPERATION_HEADER,
};

use crate::{
    Api,
    answer::{Failure, Objects, internal, json},
    call::Caller,
    ids,
    seat::Peer,
};

/// Lets a call in, and gives every answer its number, its body and its line in the audit log.
pub(crate) async fn gate(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let operation = ids::operation();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let caller = admit(&api, &request);
    if let (Ok(_), Some(peer)) = (&caller, request.extensions().get::<Peer>()) {
        api.seat.seen(peer);
    }
    let mut response = match &caller {
        Err(failure) => failure.clone().into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            // A task of its own: a writer that hangs up leaves no write without its audit line,
            // and a panic costs one call (R11).
            match tokio::spawn(bounded(api, request, next)).await {
                Ok(response) => response,
                Err(error) => internal(&error).into_response(),
            }
        }
    };
    let mut result = "ok";
    if let Some(Failure(error)) = response.extensions_mut().remove::<Failure>() {
        result = error.code.unwrap_or("not_found");
        response = error_answer(*error, &operation);
    }
    if is_write(&method) {
        let key = caller.as_ref().map_or("-", |caller| caller.key.as_str());
        audit(&response, key, &operation, &method, &path, result);
    }
    if let Ok(value) = HeaderValue::from_str(&operation) {
        response.headers_mut().insert(OPERATION_HEADER, value);
    }
    response
}

/// Answers a path or verb that does not exist.
pub(crate) async fn no_such_call(uri: Uri) -> Failure {
    ApiError::no_such_call(uri.path()).into()
}

pub(crate) fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

fn admit(api: &Api, request: &Request) -> Result<Caller, Failure> {
    let headers = request.headers();
    if !telemetry::admin::host_allowed(headers, &api.options.names) || !is_authority(headers) {
        let message = "this API answers only to an address, localhost, or a configured name";
        return Err(ApiError::new(Code::HostNotServed, message).into());
    }
    let caller = Caller::of(api, headers)?;
    // axum answers HEAD wherever there is a GET; this API has no such verb.
    if *request.method() == Method::HEAD {
        return Err(ApiError::no_such_call(request.uri().path()).into());
    }
    Ok(caller)
}

/// Whether the Host header is a host and at most a port (RFC 9110 section 7.2). Answers repeat it
/// in addresses that clients follow with their key, so nothing else may hide behind the colon.
fn is_authority(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    match authority.as_str().strip_prefix(authority.host()) {
        Some("") => true,
        Some(_port) => authority.port_u16().is_some(),
        // A name and password before the host.
        None => false,
    }
}

async fn bounded(api: Api, request: Request, next: Next) -> Response {
    match api.calls.try_acquire() {
        Ok(_permit) => next.run(request).await,
        Err(_full) => {
            let message = "too many calls at the same time: come back in a second";
            Failure::from(ApiError::new(Code::TooManyRequests, message)).into_response()
        }
    }
}

fn error_answer(error: ApiError, operation: &str) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let wait = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    let body = serde_json::to_vec(&error.into_body(operation)).unwrap_or_default();
    let mut response = json(status, body);
    if wait {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// One line per write: who, what, about which objects, and how it ended. Never a body.
fn audit(
    response: &Response,
    key: &str,
    operation: &str,
    method: &Method,
    path: &str,
    result: &str,
) {
    let objects = response
        .extensions()
        .get::<Objects>()
        .map(|objects| objects.0.join(" "))
        .unwrap_or_default();
    // The path is the caller's: quoted, so that it cannot pretend to be another line.
    let path: String = path.chars().take(256).collect();
    tracing::info!(
        target: "audit",
        {
            key.id = key,
            call.id = operation,
            call.method = %method,
            call.path = ?path,
            call.objects = objects,
            call.status = response.status().as_u16(),
            call.result = result,
        },
        "API write"
    );
}
