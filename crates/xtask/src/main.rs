//! `cargo xtask`: the project's own chores. `cargo xtask test` is the command that the README
//! names and CI runs; everything it needs it installs, and says so.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod borders;
mod fuzz;
mod peers;
mod report;
mod run;
mod test;
mod tidy;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the project")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Formatting, lints, documentation, borders and every test that needs no slow peer.
    Test {
        /// Everything else too: each crate alone, licences and bans, peers that are slow to build.
        #[arg(long)]
        all: bool,
    },
    /// Build the peers of the tests that only `test --all` runs, into `.peers`.
    Peers,
    /// Processor time of a request beside nginx, and of `check`; writes docs/performance.md.
    Bench(bench::Choice),
    /// Every fuzz target for some seconds; installs nightly Rust and cargo-fuzz where missing.
    Fuzz {
        /// How long each target runs
        #[arg(long, default_value_t = 10)]
        seconds: u32,
    },
    /// Rewrite every generated file and every stored test result, for review as a diff.
    Rewrite,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Test { all } => test::test(all),
        Chore::Peers => peers::build_all(),
        Chore::Bench(choice) => bench::bench(&choice),
        Chore::Fuzz { seconds } => fuzz::fuzz(seconds).map(drop),
        Chore::Rewrite => test::rewrite(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
