//! What this edge adds to the common API: what it can do, all that it has, commands.

use edge_api::{
    error::{ApiError, Code},
    extension::{self, Capabilities, State, TERM_HEADER},
};
use edge_state::{command::Command, state::Role};
use model::place::MatchType;
use serde::Deserialize;

use crate::{
    answer::{Answer, Outcome},
    call::Call,
};

pub(crate) async fn capabilities(call: Call) -> Outcome {
    call.no_parameters()?;
    let words = Code::ALL
        .iter()
        .filter(|code| !code.text().starts_with("ERR_"));
    Answer::ok(&Capabilities {
        edge: &call.api.options.capabilities,
        revision: call.state().revision,
        match_types: [
            MatchType::Exact,
            MatchType::StringPrefix,
            MatchType::ElementPrefix,
        ]
        .map(|match_type| match_type.wire().to_owned())
        .into(),
        extensions: extension::extensions(),
        codes: words
            .map(|code| (code.text().to_owned(), code.meaning().trim().to_owned()))
            .collect(),
    })
}

pub(crate) async fn state(call: Call) -> Outcome {
    call.no_parameters()?;
    // The clock first: a state that is newer than its reading is a reading of an older clock,
    // which makes ages shorter, never longer.
    let now = call.api.store.now();
    let state = call.state().state.redacted(call.caller.role);
    Answer::ok(&State { state, now })
}

pub(crate) async fn command(call: Call) -> Outcome {
    call.no_parameters()?;
    if call.caller.role != Role::Controller {
        let message = "only an API key of role controller may send commands";
        return Err(ApiError::new(Code::ControllerKeyRequired, message).into());
    }
    let Some(term) = call.term()? else {
        let message = format!("the header {TERM_HEADER} is missing");
        return Err(ApiError::new(Code::TermMissing, message).into());
    };
    let command: Command = serde_json::from_slice(call.body()).map_err(|error| unread(&error))?;
    let highest = match &command {
        Command::RaiseTerm { term: wanted } => term.max(*wanted),
        _ => term,
    };
    if highest > call.state().state.term {
        nobody_else(&call)?;
    }
    let applied = call.apply_under(Some(term), command).await?;
    call.api.seat.take(call.peer.clone());
    let receipt = extension::Receipt {
        revision: applied.revision,
        now: applied.now,
    };
    Ok(About::of(call.body())
        .into_iter()
        .fold(Answer::ok(&receipt)?, Answer::about))
}

/// Whoever wants to raise the term is refused by name while another is at work (R19).
fn nobody_else(call: &Call) -> Result<(), ApiError> {
    let who = if call.api.options.own_controller {
        "in the edge's own process".to_owned()
    } else if let Some(address) = call.api.seat.other(&call.peer) {
        format!("connected from {address}")
    } else {
        return Ok(());
    };
    let message = format!(
        "another controller is at work, {who}; this one takes over when it has been stopped"
    );
    let nothing_was_done = extension::detail::MAY_HAVE_APPLIED;
    Err(ApiError::new(Code::ControllerAtWork, message).with(nothing_was_done, "false"))
}

/// Why a command cannot be read. What stands in it is repeated only where it is a name of ours:
/// its values may be secrets.
fn unread(error: &serde_json::Error) -> ApiError {
    let text = error.to_string();
    let named = ["unknown field", "missing field", "duplicate field"];
    let why = if named.iter().any(|start| text.starts_with(start)) {
        text
    } else {
        format!("at line {} column {}", error.line(), error.column())
    };
    ApiError::new(
        Code::BodyUnparsable,
        format!("this is not a command of this edge: {why}"),
    )
}

/// What a command is about, for the audit log.
#[derive(Deserialize)]
struct About {
    command: String,
    id: Option<String>,
    edge: Option<String>,
    policy: Option<String>,
}

impl About {
    /// Reads it from a body that has been read as a command already, so that its ids are ids.
    fn of(body: &[u8]) -> Vec<String> {
        let Ok(Self {
            command,
            id,
            edge,
            policy,
        }) = serde_json::from_slice(body)
        else {
            return Vec::new();
        };
        [Some(command), edge, policy, id]
            .into_iter()
            .flatten()
            .collect()
    }
}
