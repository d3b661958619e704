//! The reference page of commands: what `--help` says, held word for word against the flags.
//! `PORTCULLIS_REWRITE=1 cargo test -p cli reference` rewrites it.

use std::{fmt::Write as _, fs};

use clap::CommandFactory as _;

use crate::Arguments;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/commands.md"
);

const HEAD: &str = "\
# Commands

What `--help` says, of every command. Exit codes are 0 (fine), 1 (no: see the output) and 2 (wrong usage). Lengths of time are written `2s`,
`10m`, `250ms`, `1h30m`.
";

/// A command's help, then that of those below it.
fn section(command: &clap::Command, name: &str, page: &mut String) {
    let help = command
        .clone()
        .bin_name(name)
        .term_width(100)
        .mut_args(|argument| argument.hide_env_values(true))
        .render_long_help()
        .to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n")).expect("a string");
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            section(below, &format!("{name} {}", below.get_name()), page);
        }
    }
}

#[test]
fn every_command_and_flag_is_in_the_reference() {
    let mut command = Arguments::command();
    command.build();
    let mut page = HEAD.to_owned();
    section(&command, "portcullis", &mut page);
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        fs::write(PAGE, &page).expect("the page can be written");
    }
    assert!(
        fs::read_to_string(PAGE).unwrap_or_default() == page,
        "{PAGE} is out of date: PORTCULLIS_REWRITE=1 rewrites it"
    );
}
