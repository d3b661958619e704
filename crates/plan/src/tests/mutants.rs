//! Planners that are broken on purpose: each must be found out.

use edge_state::capabilities::Atomicity;

use super::walk::walk_all;
use crate::mutation::Mutation;

/// Walks the universe until something is found, and says what it was.
fn is_caught(level: Atomicity, mutation: Mutation) -> String {
    let (count, failures) = walk_all(level, mutation);
    println!("{mutation:?} on {level:?}: found after {count:?}");
    failures
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("{mutation:?} on {level:?} goes unnoticed"))
}

#[test]
fn modules_set_one_by_one_on_an_open_route_are_caught() {
    is_caught(Atomicity::None, Mutation::ModulesOnOpenRoute);
    is_caught(Atomicity::Patch, Mutation::ModulesOnOpenRoute);
}

#[test]
fn a_deletion_before_the_neighbour_is_ready_is_caught() {
    for level in [Atomicity::None, Atomicity::Replace] {
        is_caught(level, Mutation::DeleteEarly);
    }
}

#[test]
fn a_host_deleted_before_its_wildcard_is_ready_is_caught() {
    for level in [Atomicity::None, Atomicity::Replace] {
        is_caught(level, Mutation::DeleteHostEarly);
    }
}

#[test]
fn a_route_skipped_instead_of_staged_is_caught() {
    for level in [Atomicity::None, Atomicity::Replace] {
        is_caught(level, Mutation::SkipInsteadOfStage);
    }
}

#[test]
fn a_wildcard_that_does_not_wait_for_the_hosts_below_it_is_caught() {
    for level in [Atomicity::None, Atomicity::Replace] {
        is_caught(level, Mutation::WildcardFirst);
    }
}

#[test]
fn a_shared_policy_that_changes_under_a_held_route_is_caught() {
    is_caught(Atomicity::Replace, Mutation::SharedPolicyInPlace);
}

#[test]
fn routes_that_open_before_the_demands_of_their_host_are_caught() {
    for level in [Atomicity::None, Atomicity::Patch] {
        is_caught(level, Mutation::OpenBeforeDemands);
    }
}

#[test]
fn demands_that_change_under_a_held_route_are_caught() {
    // The other levels cannot change demands while a route is open, so there is no such fault.
    is_caught(Atomicity::Replace, Mutation::DemandsUnderHeld);
}

#[test]
fn a_withdrawn_route_left_open_beside_a_held_one_is_caught() {
    is_caught(Atomicity::Replace, Mutation::LeaveWithdrawnOpen);
}
