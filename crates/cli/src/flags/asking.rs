//! Flags of commands that ask a running edge.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use controller::ports::EdgeError;
use edge_client::{ConnectOptions, EdgeAddress, KeySource, http::HttpEdge, rest::RestClient};
use model::secret::Secret;

use crate::{paths, usage::wrong_usage};

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
    #[command(flatten)]
    key: KeyFlags,
    /// Certificate authorities (PEM) to trust for --edge instead of the system's
    #[arg(long, global = true, value_name = "FILE")]
    edge_ca: Option<PathBuf>,
}

/// Which API key a question is asked with.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyFlags {
    /// File with an API key [default: $PORTCULLIS_API_KEY, else api-key in --data-dir]
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "data_dir")]
    api_key_file: Option<PathBuf>,
    /// The edge's data directory, to find the key in; nothing is written there
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// How an edge at a URL is reached.
pub(crate) fn connect_options(url: &str, ca: Option<PathBuf>) -> anyhow::Result<ConnectOptions> {
    let address: EdgeAddress = match url.parse() {
        Ok(address) => address,
        Err(error) => wrong_usage!("--edge: {error}"),
    };
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
        let key = KeySource::Text(self.key.required()?);
        Ok(RestClient::new(options, key)?)
    }
}

impl KeyFlags {
    /// The key.
    pub(crate) fn required(&self) -> anyhow::Result<Secret> {
        let (key, place) = self.find()?;
        key.ok_or_else(|| {
            anyhow!(
                "there is no API key {}: `portcullis up` and `portcullis edge` make it at their \
                 first start; name another with --data-dir DIR, --api-key-file FILE or \
                 $PORTCULLIS_API_KEY",
                place.display()
            )
        })
    }

    /// The key, where one is named or lies where it usually does.
    pub(crate) fn optional(&self) -> anyhow::Result<Option<Secret>> {
        if self.api_key_file.is_some() || self.data_dir.is_some() {
            self.required().map(Some)
        } else {
            Ok(self.find()?.0)
        }
    }

    /// The key, if there is one, and the file where it would be.
    fn find(&self) -> anyhow::Result<(Option<Secret>, PathBuf)> {
        if let Some(file) = &self.api_key_file {
            return Ok((Some(paths::read_key(file)?), file.clone()));
        }
        let usual = paths::api_key(&paths::data_dir(self.data_dir.as_deref(), false)?);
        let given = std::env::var("PORTCULLIS_API_KEY")
            .ok()
            .filter(|key| !key.is_empty());
        if let (Some(key), None) = (given, &self.data_dir) {
            return Ok((Some(Secret::new(key)), usual));
        }
        // Whoever tries the demo asks it without naming its directory.
        let demo = paths::api_key(&paths::data_dir(self.data_dir.as_deref(), true)?);
        let file = if usual.exists() { usual } else { demo };
        let key = file.exists().then(|| paths::read_key(&file)).transpose()?;
        Ok((key, file))
    }
}

/// Runs one question to its end.
pub(crate) fn ask<T>(question: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(question)
        .map_err(advised)
}

/// The error with what a person can do about it.
fn advised(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<EdgeError>() {
        Some(EdgeError::Unavailable(_)) => anyhow!(
            "{error:#}; is `portcullis up` or `portcullis edge` running there? --edge URL asks \
             another"
        ),
        Some(EdgeError::Credentials(_)) => anyhow!(
            "{error:#}; keys come from --api-key-file, $PORTCULLIS_API_KEY or --data-dir, and each \
             edge has its own"
        ),
        // To whoever asks once, nothing has changed meanwhile: it is not there.
        Some(EdgeError::Changed(message)) => anyhow!("the edge refused: {message}"),
        Some(EdgeError::Refused(_) | EdgeError::Superseded(_)) | None => error,
    }
}
