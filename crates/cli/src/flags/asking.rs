//! Flags of commands that ask a running edge.

use std::path::PathBuf;

use clap::Args;
use edge_client::{ConnectOptions, EdgeAddress, KeySource, http::HttpEdge, rest::RestClient};
use model::secret::Secret;

use crate::paths;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Edge to ask")]
pub(crate) struct AskFlags {
    /// URL of the edge's API; https, or http on loopback
    #[arg(
        long,
        global = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:4041"
    )]
    edge: String,
    /// File with an API key [default: $PORTCULLIS_API_KEY, else api-key in --data-dir]
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "data_dir")]
    api_key_file: Option<PathBuf>,
    /// The edge's data directory, to find the key in; nothing is written there
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Certificate authorities (PEM) to trust for --edge instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    edge_ca: Option<PathBuf>,
}

/// How an edge at a URL is reached.
pub(crate) fn connect_options(url: &str, ca: Option<PathBuf>) -> anyhow::Result<ConnectOptions> {
    let address: EdgeAddress = url.parse()?;
    let mut options = ConnectOptions::new(address);
    options.ca_file = ca;
    Ok(options)
}

/// An edge as a controller drives it.
pub(crate) fn controlled(url: &str, key: PathBuf, ca: Option<PathBuf>) -> anyhow::Result<HttpEdge> {
    Ok(HttpEdge::new(
        connect_options(url, ca)?,
        KeySource::File(key),
    )?)
}

impl AskFlags {
    pub(crate) fn client(&self) -> anyhow::Result<RestClient> {
        let options = connect_options(&self.edge, self.edge_ca.clone())?;
        Ok(RestClient::new(options, self.key()?)?)
    }

    fn key(&self) -> anyhow::Result<KeySource> {
        if let Some(file) = &self.api_key_file {
            return Ok(KeySource::File(file.clone()));
        }
        let given = std::env::var("PORTCULLIS_API_KEY")
            .ok()
            .filter(|key| !key.is_empty());
        if let (Some(key), None) = (given, &self.data_dir) {
            return Ok(KeySource::Text(Secret::new(key)));
        }
        let usual = paths::data_dir(self.data_dir.as_deref(), false)?;
        let demo = paths::data_dir(self.data_dir.as_deref(), true)?;
        // Whoever tries the demo asks it without naming its directory.
        let dir = if paths::api_key(&usual).exists() {
            usual
        } else {
            demo
        };
        Ok(KeySource::File(paths::api_key(&dir)))
    }
}

/// Runs one question to its end.
pub(crate) fn ask<T>(question: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(question)
}
