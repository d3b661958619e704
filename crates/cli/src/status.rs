//! `portcullis status`: what the controller knows of every declared route.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use model::{secret::Secret, status::Status};
use tokio::net::TcpStream;

use crate::{
    flags::{
        asking::{KeyFlags, ask},
        values::listener,
    },
    output::{self, Form, table},
    usage::wrong_usage,
};

/// More than a status has, with a hundred thousand routes.
const STATUS_BYTES_MAX: usize = 256 << 20;

/// Show every declared route with its state and reasons.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis status
  portcullis status -o json | jq '.routes[] | select(.state != \"open\")'
  portcullis status --admin 127.0.0.1:4043        of a controller that runs alone")]
pub(crate) struct StatusCommand {
    /// The admin listener of `up` or of the controller, on this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4042", value_parser = listener)]
    admin: SocketAddr,
    /// The form of the answer
    #[arg(short = 'o', long, value_name = "FORM", default_value = "table")]
    output: Form,
    #[command(flatten)]
    key: KeyFlags,
}

impl StatusCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if !self.admin.ip().is_loopback() {
            wrong_usage!(
                "--admin {} is not on this machine; ask it there, or GET its /status with an API key over a tunnel",
                self.admin
            );
        }
        // On loopback none is needed, and none is missed.
        let key = self.key.optional()?;
        let text = ask(fetch(self.admin, key.as_ref()))?;
        let status: Status =
            serde_json::from_slice(&text).context("the status is of another version")?;
        match self.output {
            Form::Json => output::print(&String::from_utf8_lossy(&text)),
            Form::Yaml => {
                output::print(&resources::yaml::document(&serde_json::to_value(&status)?))
            }
            Form::Table => output::print_lines(&table::routes(&status)),
        }
    }
}

async fn fetch(admin: SocketAddr, key: Option<&Secret>) -> anyhow::Result<Bytes> {
    let nobody = || {
        format!(
            "nothing answers at {admin}: start `portcullis up`, or say with --admin where it or a \
             controller (127.0.0.1:4043) listens"
        )
    };
    let stream = TcpStream::connect(admin).await.with_context(nobody)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .with_context(nobody)?;
    let mut request = Request::get("/status").header(http::header::HOST, admin.to_string());
    if let Some(key) = key {
        request = request.header(
            http::header::AUTHORIZATION,
            format!("Bearer {}", key.expose()),
        );
    }
    let request = request.body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await.with_context(nobody)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), STATUS_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| anyhow::anyhow!("the status ends early: {error}"))?
            .to_bytes();
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            if status == http::StatusCode::FORBIDDEN {
                bail!(
                    "{}: name one with --data-dir DIR, --api-key-file FILE or $PORTCULLIS_API_KEY",
                    said.trim()
                );
            }
            bail!("{}", said.trim());
        }
        Ok(body)
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::select! {
        answer = tokio::time::timeout(limit, exchange) => answer.context("no answer within 30 s")?,
        ended = connection => {
            ended.with_context(nobody)?;
            bail!("{}", nobody())
        }
    }
}
