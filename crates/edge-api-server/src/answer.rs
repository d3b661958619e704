//! Answers: one form for what succeeds and one for what does not.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use edge_api::{
    error::{ApiError, Code},
    extension::detail,
};
use edge_state::apply::{At, RefusedCommand};
use edge_store::ApplyError;
use serde::Serialize;

/// How a call ends.
pub(crate) type Outcome = Result<Answer, Failure>;

/// A success.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: Option<Vec<u8>>,
    objects: Objects,
}

/// The ids of what a call was about, for the audit log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects(pub(crate) Vec<String>);

/// A refusal. The gate turns it into a body once it has a number for the call.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub(crate) Box<ApiError>);

impl Answer {
    /// 200 with a body.
    pub(crate) fn ok(body: &impl Serialize) -> Outcome {
        Self::with(StatusCode::OK, body)
    }

    /// 201 with a body.
    pub(crate) fn created(body: &impl Serialize) -> Outcome {
        Self::with(StatusCode::CREATED, body)
    }

    /// 204.
    pub(crate) fn done() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
            objects: Objects::default(),
        }
    }

    fn with(status: StatusCode, body: &impl Serialize) -> Outcome {
        let body = serde_json::to_vec(body).map_err(|error| internal(&error))?;
        Ok(Self {
            status,
            body: Some(body),
            objects: Objects::default(),
        })
    }

    /// Names what was made or changed.
    pub(crate) fn about(mut self, id: impl Into<String>) -> Self {
        self.objects.0.push(id.into());
        self
    }
}

/// Something that should not be possible. The log says what; the caller need not know.
pub(crate) fn internal(error: &dyn std::error::Error) -> Failure {
    tracing::error!(error = %chain(error), "an API call failed inside the edge");
    ApiError::new(
        Code::Internal,
        "something went wrong inside the edge; its log says what",
    )
    .into()
}

/// An error with its sources.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self(Box::new(error))
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Refused(refused) => refusal(refused).into(),
            ApplyError::Unavailable {
                message,
                may_have_applied,
            } => ApiError::new(Code::Unavailable, message)
                .with(detail::MAY_HAVE_APPLIED, may_have_applied.to_string())
                .into(),
        }
    }
}

/// A refusal in the words of the wire: the code and status are the state machine's.
fn refusal(refused: RefusedCommand) -> ApiError {
    let RefusedCommand { code, message, at } = refused;
    let mut error = ApiError::other(code.code(), code.status(), message);
    if let Some(at) = at {
        let At { edge, host, place } = *at;
        error = error.with(detail::EDGE, edge);
        if let Some(host) = host {
            error = error.with(detail::HOST, host);
        }
        if let Some(place) = place {
            error = error
                .with(detail::MATCH_TYPE, place.match_type.wire())
                .with(detail::MATCH, place.path);
        }
    }
    error
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let Self {
            status,
            body,
            objects,
        } = self;
        let mut response = match body {
            None => status.into_response(),
            Some(body) => json(status, body),
        };
        response.extensions_mut().insert(objects);
        response
    }
}

/// A JSON answer that nobody on the way may keep.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
