//! The page of the reference that lists the refusals of commands, held word for word against the
//! code. `PORTCULLIS_REWRITE=1 cargo test -p edge-state --test reference` rewrites it.

#![expect(
    clippy::disallowed_methods,
    reason = "this test reads and writes the page that it holds"
)]

use std::fmt::Write as _;

use edge_state::apply::RefusalCode;

#[test]
fn every_refusal_of_a_command_has_its_line() {
    let mut page = String::from(
        "# Why the edge refuses a command\n\n\
         What the state machine of an edge answers to a write at its API that it does not apply. A\n\
         refused write has changed nothing. Codes with a number are those of the edge API; a word\n\
         stands where that has none. A status of 409 means: read again, and decide again.\n\n\
         | status | code | meaning |\n| --- | --- | --- |\n",
    );
    for code in RefusalCode::ALL {
        writeln!(
            page,
            "| {} | `{code}` | {} |",
            code.status(),
            code.meaning()
        )
        .expect("a string takes everything");
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/command-refusals.md"
    );
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page,
        "{path} is out of date: PORTCULLIS_REWRITE=1 rewrites it"
    );
}
