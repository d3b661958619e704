//! Many hosts: what is planned and checked grows with what is declared, and no faster.

#![expect(clippy::disallowed_methods, reason = "what is measured is time")]

use std::{collections::BTreeMap, time::Instant};

use edge_state::{apply::Machine, capabilities::Atomicity, state::EdgeState};
use model::time::Timestamp;

use super::fixture::{Given, NOW, Say, apply, declaration, host, prefix};
use crate::{check, plan};

/// Plans for `count` hosts from nothing until nothing is left to do; returns the seconds of
/// planning and checking, and the steps.
fn from_nothing(count: usize) -> (f64, usize) {
    let hosts: Vec<_> = (0..count)
        .map(|n| host(&format!("h{n}.example.com")))
        .collect();
    let wildcard = host("*.example.com");
    let (slash, admin) = (prefix("/"), prefix("/admin"));
    let mut lines = vec![(&wildcard, &slash, Say::Plain)];
    lines.extend(
        hosts
            .iter()
            .flat_map(|name| [(name, &slash, Say::A), (name, &admin, Say::B)]),
    );
    let declared = declaration(&lines, &BTreeMap::new(), false);
    let given = Given::new(Atomicity::Replace);
    let mut machine = Machine::new(EdgeState::default());
    let (mut seconds, mut steps) = (0.0, 0);
    for _ in 0..4 {
        let now = Timestamp(NOW.0);
        let inputs = given.inputs(machine.state(), &declared, now);
        let begun = Instant::now();
        let made = plan(&inputs);
        check(&inputs, &made).expect("the plan keeps the promise");
        seconds += begun.elapsed().as_secs_f64();
        steps += made.steps.len();
        if made.is_empty() {
            return (seconds, steps);
        }
        for step in &made.steps {
            apply(&mut machine, &step.command, now).expect("a planned step is valid");
        }
    }
    panic!("{count} hosts take more than three plans")
}

#[test]
fn a_thousand_hosts_below_a_wildcard_take_three_plans() {
    let (small, few) = from_nothing(100);
    let (large, many) = from_nothing(1000);
    println!("100 hosts: {few} steps, {small:.3} s; 1000 hosts: {many} steps, {large:.3} s");
    assert_eq!(
        many,
        2 * 1000 + (few - 2 * 100),
        "a reservation and an edge for each host"
    );
}
