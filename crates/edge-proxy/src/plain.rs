//! The plain HTTP port: sends clients of declared hosts to HTTPS, and does nothing else.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use routing::refusal::Refusal;

use crate::{
    codec::control::{Control, Upgrade},
    pages::{self, Shown},
    request,
    worker::Worker,
};

/// Answers a request on the plain port.
pub(crate) fn serve(
    worker: &Worker,
    control: &Control,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    control.request_began();
    let mut response = redirect(worker, control, request).unwrap_or_else(|reason| {
        let id = worker.request_id().to_string();
        let page = pages::refuse(
            reason,
            Shown::of(request.headers().get(header::ACCEPT)),
            request.method(),
            &id,
            None,
        );
        worker.metrics.request(Some(reason), None);
        let closes = reason.closes_connection();
        let mut response = page.map(Full::new);
        if closes {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    });
    if control.closing.get() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if request.headers().contains_key(header::UPGRADE) {
        control.decide(Upgrade::Refused);
    }
    control.request_ended();
    response
}

fn redirect(
    worker: &Worker,
    control: &Control,
    request: &Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Refusal> {
    if let Some(error) = control.refused() {
        return Err(request::head_refusal(error));
    }
    match *request.method() {
        Method::CONNECT => return Err(Refusal::ConnectRefused),
        Method::TRACE => return Err(Refusal::TraceRefused),
        _ => {}
    }
    let asked = request::read_plain(request)?;
    let table = &worker.store.load().table;
    if let Some(reason) = table.refuses_everything() {
        return Err(reason);
    }
    table.host(asked.host()).ok_or(Refusal::UnknownHost)?;
    worker.metrics.redirects.add(1);
    // The client's own port is not repeated: HTTPS is where the operator says.
    let location = match worker.shared.public_port {
        443 => format!("https://{}{}", asked.host(), asked.target),
        port => format!("https://{}:{port}{}", asked.host(), asked.target),
    };
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(
        header::LOCATION,
        HeaderValue::try_from(location).map_err(|_| Refusal::HostInvalid)?,
    );
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
