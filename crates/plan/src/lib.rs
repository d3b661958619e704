//! The planner: what to do to an edge so that it becomes as declared, step by step, without ever
//! answering a request in a way that nobody declared.

#![warn(missing_docs)]

mod check;
mod content;
mod draft;
mod inputs;
#[cfg(test)]
mod mutation;
mod oracle;
mod piecewise;
mod planner;
mod record;
mod replace;
mod report;
mod step;
mod target;
mod upkeep;
mod wish;
mod world;

#[cfg(test)]
mod tests;

pub use check::{Violation, check};
pub use inputs::{Inputs, OnInvalid, Options, Rejections, RouteKey};
pub use planner::plan;
pub use report::{Note, Report, RouteReport};
pub use step::{Plan, Step};
