//! `portcullis api-keys`: making, listing and deleting API keys.

use clap::{Args, Subcommand, ValueEnum};
use edge_api::api_key::ApiKey;

use crate::{
    flags::asking::{AskFlags, ask},
    output::{self, table::columns},
};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyRole {
    /// Reads, never a secret
    Read,
    /// Reads, and writes what no controller owns
    Write,
    /// Everything; for controllers
    Controller,
}

impl KeyRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Controller => "controller",
        }
    }
}

/// Make, list and delete API keys.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis api-keys create --role read --description monitoring
  portcullis api-keys list
  portcullis api-keys delete ak_2KZtV8hrTPdf0Q0lS4LCDGosGXl

A key of the role controller is made with one, which the first start leaves in the data directory:
  portcullis api-keys create --role controller --api-key-file DATA_DIR/controller-key")]
pub(crate) struct ApiKeys {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    ask: AskFlags,
}

#[derive(Subcommand)]
enum Action {
    /// Make a key; it is printed once, alone on standard output
    Create {
        /// What it may do
        #[arg(long, value_name = "ROLE")]
        role: KeyRole,
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
    },
    /// List the keys
    List,
    /// Delete a key: it is refused from now on
    Delete {
        /// Its id
        id: String,
    },
}

impl ApiKeys {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.ask.client()?;
        ask(async move {
            match self.action {
                Action::Create { role, description } => {
                    let key = client.create_key(role.name(), &description).await?;
                    output::print(&format!("{}\n", key.token.unwrap_or_default()))
                }
                Action::List => {
                    let mut rows = vec![
                        ["ID", "ROLE", "MADE", "DESCRIPTION"]
                            .map(str::to_owned)
                            .to_vec(),
                    ];
                    rows.extend(
                        client
                            .all::<ApiKey>()
                            .await?
                            .into_iter()
                            .map(|key| vec![key.id, key.role, key.created_at, key.description]),
                    );
                    output::print_lines(&columns(&rows, &[30, 10, 20, 12]))
                }
                Action::Delete { id } => {
                    client.delete_key(&id).await?;
                    output::print(&format!("{id} is refused from now on\n"))
                }
            }
        })
    }
}
