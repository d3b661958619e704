//! The planner: what to do to an edge so that it becomes as declared, step by step, without ever
//! answering a request in a way that nobody declared.
//!
//! [`plan`] is a pure function of [`Inputs`]: the edge as it is, the declaration, the edge's
//! clock, the operator's options, what the edge can do in one step, and what it has refused. The
//! result is a [`Plan`]: steps, and a [`Report`] of how every route stands. A plan holds what may
//! be done in the state as it is. It need not lead all the way: take its steps, plan again, until
//! a plan is empty. So nothing is remembered between plans but the edge's own state, and a crash,
//! a lost answer or another writer is no case of its own.
//!
//! # Guarantees
//!
//! - *The promise*: whichever steps of a plan are applied, each takes each request from the
//!   handling that it has to the same, to a refusal, or to the declared one. [`check()`] holds every
//!   plan to it, independently, before it is carried out; `docs/proof.md` says what has been gone
//!   through completely.
//! - *An end*: when steps stop failing, a bounded number of plans leads to an empty one, and a
//!   converged edge gets an empty plan (R9).
//! - *Nobody else's*: only what carries the controller's name is touched (R20), and nothing that is
//!   shared is changed in place (R17).
//! - *One bad route hurts no other* (R15), save those that R3, R5 and R13 couple to it; the report
//!   says by which.
//!
//! # Assumptions
//!
//! - The caller leaves out a step if one that it requires was not acknowledged, and reads the edge
//!   again after an answer that did not arrive (R6). It may stop at any step.
//! - The declaration is of one whole snapshot (R19), as a tree of files at rest is.
//! - A [`Step::command`] on an edge with *replace* names the generation that it expects; on others
//!   it says [`edge_state::command::Expected::Any`], since they have no generations: there one
//!   writer at a time is assumed.
//! - Each host of a controller has an edge of its own. A host without a matching route is refused
//!   by its edge and never falls to its wildcard's.
//! - A reading of the edge may leave out secrets; digests then speak for them. A route that is held
//!   is written as it was read, so an edge that enforces modules with secrets must either show them
//!   to its controller or take a write that leaves a route as it is. No module with a secret is
//!   enforced yet.
//!
//! # Caveats
//!
//! - On edges without *replace* a held route that would have to refuse more (R17) closes, since
//!   there is no call for it; certificates are not put on them; and where a change takes several
//!   calls, the route is closed around them (R4).
//! - Ages are compared, never counted: [`Plan::wake_at`] says when the next one matters.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

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
