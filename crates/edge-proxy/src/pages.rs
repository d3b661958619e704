//! Refusals as answers: a page for people, and in headers and on request in JSON for programs.
//!
//! A page names the error and the request, never what stands behind the edge.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use routing::refusal::Refusal;

const ERROR_CODE: HeaderName = HeaderName::from_static("ngrok-error-code");
const REQUEST_ID: HeaderName = HeaderName::from_static("portcullis-request-id");

/// What a client can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Html,
    Json,
    Text,
}

impl Shown {
    /// What the `Accept` header names first; programs that name nothing get text.
    pub(crate) fn of(accept: Option<&HeaderValue>) -> Self {
        let accept = accept
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let first = |kind: &str| accept.find(kind).unwrap_or(usize::MAX);
        let (html, json) = (first("text/html"), first("json"));
        if html == json {
            Self::Text
        } else if html < json {
            Self::Html
        } else {
            Self::Json
        }
    }
}

/// The answer to a request that is not passed on.
pub(crate) fn refuse(
    reason: Refusal,
    shown: Shown,
    method: &Method,
    request_id: &str,
    placeholder: Option<&str>,
) -> Response<Bytes> {
    let (kind, body) = match (placeholder, reason, shown) {
        (Some(page), Refusal::RouteClosed, Shown::Html | Shown::Text) => {
            ("text/html; charset=utf-8", page.to_owned())
        }
        (_, _, Shown::Html) => ("text/html; charset=utf-8", html(reason, request_id)),
        (_, _, Shown::Json) => ("application/json", json(reason, request_id)),
        (_, _, Shown::Text) => ("text/plain; charset=utf-8", text(reason, request_id)),
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() =
        StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(ERROR_CODE, HeaderValue::from_static(reason.code()));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(seconds) = reason.retry_after_secs() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if reason.status() == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(
            header::ALLOW,
            HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        );
    }
    drop_body_where_none_goes(&mut response, method);
    response
}

/// An answer to HEAD says how long its body would be and has none (RFC 9110 section 9.3.2); 204
/// and 304 have none either. HTTP/1's codec would see to it, that of HTTP/2 sends what it gets.
pub(crate) fn drop_body_where_none_goes(response: &mut Response<Bytes>, method: &Method) {
    let by_status = matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    if !by_status && method != Method::HEAD {
        return;
    }
    let length = std::mem::take(response.body_mut()).len();
    let headers = response.headers_mut();
    if by_status {
        headers.remove(header::CONTENT_LENGTH);
    } else {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
}

fn text(reason: Refusal, request_id: &str) -> String {
    format!(
        "{}\n{}\n\n{} {}\nrequest {request_id}\n",
        reason.title(),
        reason.text(),
        reason.status(),
        reason.code()
    )
}

fn json(reason: Refusal, request_id: &str) -> String {
    let mut body = serde_json::json!({
        "status_code": reason.status(),
        "error_code": reason.code(),
        "title": reason.title(),
        "msg": reason.text(),
        "request_id": request_id,
    })
    .to_string();
    body.push('\n');
    body
}

/// Texts come from `Refusal` alone, which holds no markup; the id is our own.
fn html(reason: Refusal, request_id: &str) -> String {
    let (title, text, status, code) = (
        reason.title(),
        reason.text(),
        reason.status(),
        reason.code(),
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n\
         :root {{ color-scheme: light dark }}\n\
         body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem }}\n\
         h1 {{ font-size: 1.7rem; margin: 0 0 .5rem }}\n\
         footer {{ margin-top: 2.5rem; font: .85rem/1.6 ui-monospace, monospace; opacity: .65 }}\n\
         </style>\n<h1>{title}</h1>\n<p>{text}</p>\n<footer>{status} · {code}<br>request {request_id}</footer>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> Shown {
        Shown::of(Some(&HeaderValue::from_static(value)))
    }

    #[test]
    fn people_get_pages_and_programs_what_they_ask_for() {
        assert_eq!(
            accept("text/html,application/xhtml+xml,*/*;q=0.8"),
            Shown::Html
        );
        assert_eq!(accept("application/json, text/html;q=0.1"), Shown::Json);
        assert_eq!(accept("*/*"), Shown::Text);
        assert_eq!(Shown::of(None), Shown::Text);
    }

    #[test]
    fn a_closed_route_says_so_to_both() {
        let page = refuse(Refusal::RouteClosed, Shown::Html, &Method::GET, "r-1", None);
        assert_eq!(page.status(), 503);
        assert_eq!(page.headers()["ngrok-error-code"], "ERR_NGROK_6015");
        assert_eq!(page.headers()["cache-control"], "no-store");
        assert!(page.headers().contains_key("retry-after"));
        let body = std::str::from_utf8(page.body()).expect("text");
        assert!(
            body.contains("ERR_NGROK_6015") && body.contains("r-1"),
            "{body}"
        );
        let head = refuse(
            Refusal::RouteClosed,
            Shown::Html,
            &Method::HEAD,
            "r-1",
            None,
        );
        assert!(head.body().is_empty());
        assert_eq!(
            head.headers()["content-length"],
            page.body().len().to_string()
        );
    }

    #[test]
    fn the_placeholder_takes_the_closed_page_s_place_and_no_other_s() {
        let page = |reason| {
            refuse(reason, Shown::Html, &Method::GET, "r", Some("<p>soon</p>")).into_body()
        };
        assert_eq!(page(Refusal::RouteClosed), "<p>soon</p>");
        assert_ne!(page(Refusal::NoRoute), "<p>soon</p>");
        let json = refuse(
            Refusal::RouteClosed,
            Shown::Json,
            &Method::GET,
            "r",
            Some("<p>soon</p>"),
        );
        assert_eq!(json.headers()["ngrok-error-code"], "ERR_NGROK_6015");
        assert!(serde_json::from_slice::<serde_json::Value>(json.body()).is_ok());
    }
}
