//! `portcullis domains`: who owns a host, and changing it (R20).

use anyhow::bail;
use clap::{Args, Subcommand};
use edge_api::domain::ReservedDomain;
use edge_client::rest::RestClient;
use model::host::HostPattern;

use crate::{
    flags::asking::{AskFlags, ask},
    output,
};

/// Show or change who owns a host.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis domains assign shop.example.com web     the namespace web may declare it from now on
  portcullis domains release shop.example.com        the next namespace that declares it owns it

Owners are the controller's: it takes its key, --api-key-file DATA_DIR/controller-key")]
pub(crate) struct Domains {
    #[command(subcommand)]
    change: Change,
    #[command(flatten)]
    ask: AskFlags,
}

#[derive(Subcommand)]
enum Change {
    /// Give a host to a namespace
    Assign {
        /// The host or wildcard
        host: String,
        /// The namespace
        namespace: String,
    },
    /// Take a host from its namespace
    Release {
        /// The host or wildcard
        host: String,
    },
}

impl Domains {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.ask.client()?;
        ask(async move {
            match self.change {
                Change::Assign { host, namespace } => {
                    let domain = find(&client, &host).await?;
                    client.assign_domain(&domain.id, &namespace).await?;
                    output::print(&format!(
                        "{} belongs to the namespace {namespace} now\n",
                        domain.domain
                    ))
                }
                Change::Release { host } => {
                    let domain = find(&client, &host).await?;
                    client.release_domain(&domain.id).await?;
                    output::print(&format!("{} belongs to nobody now\n", domain.domain))
                }
            }
        })
    }
}

async fn find(client: &RestClient, host: &str) -> anyhow::Result<ReservedDomain> {
    let host = HostPattern::parse(host).map_err(|error| anyhow::anyhow!("{host:?}: {error}"))?;
    let all = client.all::<ReservedDomain>().await?;
    match all
        .into_iter()
        .find(|domain| domain.domain == host.as_str())
    {
        Some(domain) => Ok(domain),
        None => bail!("the edge has no reserved domain {host}; see portcullis get domains"),
    }
}
