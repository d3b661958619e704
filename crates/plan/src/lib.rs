//! The planner: what to do to an edge so that it becomes as declared, step by step, without ever
//! answering a request in a way that nobody declared.

#![warn(missing_docs)]

mod check;
mod inputs;
mod report;
mod step;

pub use check::{Violation, check};
pub use inputs::{Inputs, OnInvalid, Options, Rejections, RouteKey};
pub use report::{Note, Report, RouteReport};
pub use step::{Plan, Step};

/// What to do next: a pure function of its inputs.
#[must_use]
pub fn plan(_inputs: &Inputs<'_>) -> Plan {
    Plan::default()
}
