//! From objects to a declaration: a pure function of a snapshot, the records kept at the edge and
//! the operator's options.
//!
//! ```text
//! Ingress ─┐  classes, annotations, module sets ─▶ preflight ─┐
//! edges  ──┼─▶ wishes ─▶ ownership (R20) ─▶ hosts: places, demands ─▶ Declaration
//! Domain ──┘  backends, certificates ─────────────────────────┘
//! ```
//!
//! A *wish* is what one object asks for, judged by itself. Then hosts are given to namespaces,
//! and each place of a host to one wish. Nothing is dropped: what cannot be served is declared
//! all the same, invalid or pending, so that it stands closed in its place (R3); every finding is
//! returned, none is logged, and no error stops the rest (R15).
//!
//! The result does not depend on the order of anything but the objects' ages.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod annotations;
mod backend;
mod certificate;
mod classes;
pub mod codes;
mod demands;
pub mod digest;
mod edges;
mod findings;
mod foreign_protection;
mod host_text;
mod hosts;
mod ingress;
mod labelled;
mod module_sets;
mod modules;
pub mod options;
mod ownership;
mod pending;
mod place;
mod policies;
mod preflight;
pub mod records;
mod references;
mod salvage;
mod wish;

use model::declaration::Declaration;
use resources::snapshot::Snapshot;

use crate::{
    digest::DigestKey,
    hosts::Assembly,
    options::Options,
    pending::Pending,
    records::{RecordedRoute, Records},
    references::References,
};

/// Everything that a declaration is made of.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The objects.
    pub snapshot: &'a Snapshot,
    /// What the edge remembers.
    pub records: &'a Records,
    /// What the operator decides.
    pub options: &'a Options,
    /// The controller's key for digests.
    pub key: &'a DigestKey,
}

/// Translates and judges.
#[must_use]
pub fn translate(input: &Input<'_>) -> Declaration {
    let references = References::new(input);
    let mut diagnostics = pending::problems(input.snapshot);
    let ingresses = ingress::wishes(&references, &mut diagnostics);
    let mut wishes = ingresses.wishes;
    wishes.extend(edges::wishes(&references, &mut diagnostics));
    let pending = Pending::of(input.snapshot, ingresses.unclear, &wishes);
    wishes.sort_by(|left, right| left.rank().cmp(&right.rank()));
    ownership::settle(
        &mut wishes,
        (input.records, input.options),
        |record| {
            record
                .routes
                .values()
                .any(|route| pending.is_pending(&route.owner))
        },
        &mut diagnostics,
    );
    let policies = policies::declared(&references);
    let mut assembly = Assembly {
        references: &references,
        pending: &pending,
        policies: &policies,
        backends: std::collections::BTreeMap::new(),
        diagnostics,
    };
    let hosts = assembly.hosts(&wishes);
    let Assembly {
        backends,
        mut diagnostics,
        references: _,
        pending: _,
        policies: _,
    } = assembly;
    diagnostics.sort();
    diagnostics.dedup();
    let Pending {
        owners,
        nothing_is_removed,
        unreadable,
        scanned: _,
        ..
    } = pending;
    Declaration {
        hosts,
        policies,
        backends,
        unreadable,
        pending_owners: owners,
        terminating: pending::terminating(input.snapshot),
        nothing_is_removed,
        diagnostics,
    }
}
