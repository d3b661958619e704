//! A call: who makes it, and what it brings.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, Method, header},
};
use edge_api::{
    api_key,
    error::{ApiError, Code},
    extension::{EXPECTED_HEADER, TERM_HEADER, VERSION, VERSION_HEADER},
    json::Members,
    list::parameters,
};
use edge_state::{
    command::{Command, Expected},
    state::Role,
};
use edge_store::{Applied, ApplyError, Published, Writer};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use model::id::KeyId;
use tokio::sync::MutexGuard;

use crate::{Api, answer::Failure, gate::is_write, seat::Peer};

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) key: KeyId,
    pub(crate) role: Role,
}

impl Caller {
    /// Finds the key that a request carries.
    pub(crate) fn of(api: &Api, headers: &HeaderMap) -> Result<Self, Failure> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = values.next().ok_or_else(|| {
            ApiError::new(
                Code::CredentialsMissing,
                "the authorization header is missing",
            )
        })?;
        let unreadable = || {
            ApiError::new(
                Code::CredentialsUnreadable,
                "the authorization header must be: Bearer KEY",
            )
        };
        if values.next().is_some() {
            return Err(unreadable().into());
        }
        let (scheme, key) = value
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .ok_or_else(unreadable)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unreadable().into());
        }
        let key = key.trim();
        api_key::check_form(key)?;
        let published = api.store.load();
        match published.find_key(&api_key::digest(key)) {
            Some((key, role)) => Ok(Self { key, role }),
            // An edge that could not read its state knows no key. Its callers must not conclude
            // that theirs is wrong (R10).
            None if published.state.keys.is_empty() => {
                let message = "this edge has no state to speak of: its log says how to go on";
                Err(ApiError::new(Code::Unavailable, message).into())
            }
            None => Err(ApiError::new(Code::KeyUnknown, "there is no such API key").into()),
        }
    }
}

/// A call whose caller is known and whose body has been read, not yet understood.
pub(crate) struct Call {
    pub(crate) api: Api,
    pub(crate) caller: Caller,
    /// Scheme and authority as the caller wrote them: answers lead back the same way, and never
    /// to another host, because clients follow them with their key.
    pub(crate) base: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) peer: Peer,
    headers: HeaderMap,
    body: Bytes,
}

impl FromRequest<Api> for Call {
    type Rejection = Failure;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        let from_gate = (
            parts.extensions.remove::<Caller>(),
            parts.extensions.remove::<Peer>(),
        );
        let (Some(caller), Some(peer)) = from_gate else {
            let message = "the authorization header is missing";
            return Err(ApiError::new(Code::CredentialsMissing, message).into());
        };
        let path = parts.uri.path();
        let ours = path.starts_with("/portcullis/");
        if !ours {
            check_version(&parts.headers)?;
        }
        if is_write(&parts.method) && caller.role == Role::Read {
            let message = "this API key reads and changes nothing";
            return Err(ApiError::new(Code::ReadOnlyKey, message).into());
        }
        let whole = ours || (parts.method == Method::PUT && path.starts_with("/edges/"));
        let options = &api.options;
        let bytes_max = if whole {
            options.whole_body_bytes_max
        } else {
            options.body_bytes_max
        };
        let body = Limited::new(body, bytes_max).collect();
        let body = match tokio::time::timeout(options.body_timeout, body).await {
            Err(_late) => {
                let message = "the body did not arrive in time";
                return Err(ApiError::new(Code::RequestTimeout, message).into());
            }
            Ok(Err(error)) => return Err(unread(&*error, bytes_max).into()),
            Ok(Ok(body)) => body.to_bytes(),
        };
        check_body(&parts.method, &parts.headers, &body)?;
        let base = format!("{}://{}", api.scheme, host(&parts.headers));
        let query = parts.uri.query().map(str::to_owned);
        let path = path.to_owned();
        Ok(Self {
            api: api.clone(),
            caller,
            base,
            path,
            query,
            peer,
            headers: parts.headers,
            body,
        })
    }
}

fn host(headers: &HeaderMap) -> &str {
    headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default()
}

fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(VERSION_HEADER) {
        None => {
            let message = format!("the header {VERSION_HEADER}: {VERSION} is missing");
            Err(ApiError::new(Code::VersionMissing, message))
        }
        Some(version) if version == VERSION => Ok(()),
        Some(_) => {
            let message = format!("this API has one version: {VERSION_HEADER}: {VERSION}");
            Err(ApiError::new(Code::VersionUnsupported, message))
        }
    }
}

fn unread(error: &(dyn std::error::Error + 'static), bytes_max: usize) -> ApiError {
    if error.is::<LengthLimitError>() {
        ApiError::new(
            Code::BodyTooLarge,
            format!("the body has more than {bytes_max} bytes"),
        )
    } else {
        ApiError::new(Code::BodyUnreadable, "the body could not be read")
    }
}

fn check_body(method: &Method, headers: &HeaderMap, body: &[u8]) -> Result<(), ApiError> {
    if body.is_empty() {
        return Ok(());
    }
    if *method == Method::GET || *method == Method::DELETE {
        return Err(ApiError::new(
            Code::BodyNotAllowed,
            format!("{method} takes no body"),
        ));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        let message = "a body needs the header content-type: application/json";
        return Err(ApiError::new(Code::ContentTypeMissing, message));
    };
    // One official client adds a charset: the media type alone counts.
    let media = kind
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    if media.trim().eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(ApiError::new(
            Code::ContentTypeUnsupported,
            "the content type must be application/json",
        ))
    }
}

impl Call {
    /// The body as an object whose members are asked for one by one.
    pub(crate) fn members(&self) -> Result<Members, ApiError> {
        self.no_parameters()?;
        Members::read(&self.body)
    }

    /// The body as it came.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Checks that nothing is asked for in the query.
    pub(crate) fn no_parameters(&self) -> Result<(), ApiError> {
        parameters(self.query.as_deref(), &[]).map(|_none| ())
    }

    /// Takes the turn of a REST write; nobody else's comes in between until it is dropped.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.api.writing.lock().await
    }

    /// The state now.
    pub(crate) fn state(&self) -> Arc<Published> {
        self.api.store.current()
    }

    /// The generation of the edge that the caller expects.
    pub(crate) fn expected(&self) -> Result<Expected, ApiError> {
        let Some(value) = self.headers.get(EXPECTED_HEADER) else {
            return Ok(Expected::Any);
        };
        match value.to_str() {
            Ok("absent") => Ok(Expected::Absent),
            Ok(text) if text.bytes().all(|b| b.is_ascii_digit()) => text
                .parse()
                .map(Expected::Generation)
                .map_err(|_| ApiError::invalid(EXPECTED_HEADER, "a number or absent")),
            Ok(_) | Err(_) => Err(ApiError::invalid(EXPECTED_HEADER, "a number or absent")),
        }
    }

    /// The writer's term, if it says one.
    pub(crate) fn term(&self) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.headers.get(TERM_HEADER) else {
            return Ok(None);
        };
        let number = value
            .to_str()
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|text| text.parse().ok()) {
            Some(term) => Ok(Some(term)),
            None => Err(ApiError::invalid(TERM_HEADER, "a number")),
        }
    }

    /// Carries out a command in the caller's name.
    pub(crate) async fn apply(&self, command: Command) -> Result<Applied, Failure> {
        self.apply_under(None, command).await
    }

    /// The same for a controller, whose term fences it.
    pub(crate) async fn apply_under(
        &self,
        term: Option<u64>,
        command: Command,
    ) -> Result<Applied, Failure> {
        let writer = Writer {
            role: self.caller.role,
            term,
        };
        let applied = self.api.store.apply(command, &writer);
        match tokio::time::timeout(self.api.options.apply_timeout, applied).await {
            Ok(applied) => applied.map_err(Failure::from),
            Err(_late) => Err(Failure::from(ApplyError::Unavailable {
                message: "the edge takes too long to save the change".to_owned(),
                may_have_applied: true,
            })),
        }
    }
}
