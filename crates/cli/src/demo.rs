//! `--demo`: an echo page that stands in for Services without endpoints, so that there is
//! something to see. It shows the request as the backend received it: what the edge added and
//! what it took away.

use std::{convert::Infallible, net::SocketAddr};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

/// More of a body than this is not shown.
const BODY_SHOWN: usize = 64 * 1024;
const CONNECTIONS: usize = 256;

/// Serves the echo page on a port of its own on loopback until `shutdown`.
///
/// # Errors
/// When no port can be had.
pub(crate) async fn start(mut shutdown: watch::Receiver<bool>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let places = std::sync::Arc::new(Semaphore::new(CONNECTIONS));
    tokio::spawn(async move {
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = shutdown.wait_for(|stop| *stop) => return,
            };
            let Ok((stream, _)) = accepted else { continue };
            tokio::spawn(async move {
                let served = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(std::time::Duration::from_secs(30))
                    .serve_connection(TokioIo::new(stream), service_fn(echo))
                    .await;
                if let Err(error) = served {
                    tracing::debug!(%error, "demo connection ended");
                }
                drop(place);
            });
        }
    });
    Ok(address)
}

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_SHOWN)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let shown = match &body {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => format!("(more than {BODY_SHOWN} bytes)"),
    };
    let wants_page = head
        .headers
        .get(header::ACCEPT)
        .is_some_and(|accept| String::from_utf8_lossy(accept.as_bytes()).contains("text/html"));
    let (kind, text) = if wants_page {
        (
            "text/html; charset=utf-8",
            page(
                head.method.as_str(),
                &head.uri.to_string(),
                &headers,
                &shown,
            ),
        )
    } else {
        let value = json!({
            "demo": "this is the built-in echo page of portcullis --demo",
            "method": head.method.as_str(),
            "target": head.uri.to_string(),
            "headers": headers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
            "body": shown,
        });
        ("application/json", format!("{value:#}\n"))
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    Ok(response)
}

fn page(method: &str, target: &str, headers: &[(String, String)], body: &str) -> String {
    let rows: String = headers
        .iter()
        .map(|(name, value)| {
            format!(
                "<tr><th>{}</th><td>{}</td></tr>",
                escape(name),
                escape(value)
            )
        })
        .collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Portcullis demo</title>\
         <style>body{{font:16px/1.5 system-ui;max-width:48rem;margin:3rem auto;padding:0 1rem}}\
         th{{text-align:left;padding-right:1.5rem;vertical-align:top}}td{{word-break:break-all}}\
         code{{background:#eee;padding:.1em .3em}}</style>\
         <h1>This route is open</h1><p>The built-in echo page of <code>portcullis --demo</code> \
         shows the request as a backend receives it.</p><p><code>{} {}</code></p>\
         <table>{rows}</table><pre>{}</pre></html>\n",
        escape(method),
        escape(target),
        escape(body)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
