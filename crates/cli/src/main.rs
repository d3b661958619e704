//! The command line: one file a subcommand, wiring only.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

mod api_keys;
mod assembly;
mod check;
mod control;
mod crds;
mod demo;
mod domains;
mod edge;
mod flags;
mod get;
mod keys;
mod output;
mod paths;
#[cfg(test)]
mod reference;
mod status;
mod stop;
mod up;
mod usage;

/// Fail-closed ingress: a route opens only when every protection on it is in force.
#[derive(Parser)]
#[command(name = "portcullis", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// Log format
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Log"
    )]
    log_format: LogFormat,
    /// Log level or filter
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        default_value = "info",
        env = "PORTCULLIS_LOG",
        help_heading = "Log"
    )]
    log: String,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  portcullis up --demo -f examples/quickstart     try it: everything in one process, no cluster
  portcullis check -f manifests/                  would every declared route open? (for CI)
  portcullis up -f manifests/ --service shop/web:80=127.0.0.1:3000
  portcullis status                               what is open, what is not, and why

Exit codes: 0 fine, 1 no (see the output), 2 wrong usage.";

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
enum Command {
    /// Serve manifests: controller and edge in one process
    Up(Box<up::Up>),
    /// Run an edge alone; controllers and API clients drive it
    Edge(Box<edge::Edge>),
    /// Run a controller alone, against an edge's API
    Controller(Box<control::Control>),
    /// Say whether every declared route would open, and why not
    Check(Box<check::Check>),
    /// Show what an edge has
    Get(get::Get),
    /// Show every declared route with its state and reasons
    Status(status::StatusCommand),
    /// Show or change who owns a host
    Domains(domains::Domains),
    /// Make, list and delete API keys
    ApiKeys(api_keys::ApiKeys),
    /// Print the custom resource definitions
    #[command(after_help = "\
Examples:
  portcullis crds | kubectl apply -f -")]
    Crds,
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  portcullis completions bash > ~/.local/share/bash-completion/completions/portcullis
  portcullis completions zsh > \"${fpath[1]}/_portcullis\"")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let arguments: Arguments = match usage::arguments() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let format = match arguments.log_format {
        LogFormat::Text => telemetry::logs::Format::Text,
        LogFormat::Json => telemetry::logs::Format::Json,
    };
    if let Err(error) = telemetry::logs::init(format, &arguments.log, || output::live::AboveTable) {
        return complain(&error.into(), 2);
    }
    let outcome = match arguments.command {
        Command::Up(up) => up.run(),
        Command::Edge(edge) => edge.run(),
        Command::Controller(control) => control.run(),
        Command::Check(check) => return check.run().unwrap_or_else(|error| complain(&error, 2)),
        Command::Get(get) => get.run(),
        Command::Status(status) => status.run(),
        Command::Domains(domains) => domains.run(),
        Command::ApiKeys(keys) => keys.run(),
        Command::Crds => crds::run(),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "portcullis", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let wrong = error.chain().any(|cause| {
                cause.is::<usage::Usage>() || cause.is::<manifests::files::UsageError>()
            });
            complain(&error, if wrong { 2 } else { 1 })
        }
    }
}

/// Says what went wrong, with its causes, on standard error. A reader of ours that has gone away
/// (`| head`) is no failure.
fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    let broken_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        return ExitCode::SUCCESS;
    }
    let text = format!("error: {error:#}");
    for line in output::table::wrap(&text, output::table::WIDTH) {
        anstream::eprintln!("{line}");
    }
    ExitCode::from(code)
}
