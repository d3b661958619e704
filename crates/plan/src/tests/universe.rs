//! First look.

use std::collections::BTreeMap;
use std::time::Instant;

use edge_state::{apply::Machine, capabilities::Atomicity};

use super::fixture::*;
use crate::{check, plan};

#[test]
fn first_look() {
    let h = host("a.example.com");
    let w = host("*.example.com");
    let (root, pa, ea) = (prefix("/"), prefix("/a"), exact("/a"));
    let says = |n: usize| {
        [
            (&h, &root, Say::ALL[n % 5]),
            (&h, &pa, Say::ALL[n / 5 % 5]),
            (&h, &ea, Say::ALL[n / 25 % 5]),
            (&w, &root, Say::ALL[n / 125 % 5]),
        ]
    };
    let demands = |on: bool| {
        if on {
            BTreeMap::from([(h.clone(), mutual_tls())])
        } else {
            BTreeMap::new()
        }
    };
    let starts: Vec<_> = (0..1250)
        .map(|n| state(&says(n % 625), &demands(n >= 625)))
        .collect();
    for level in [Atomicity::Replace, Atomicity::Patch, Atomicity::None] {
        let given = Given::new(level);
        let (mut plans, mut steps, mut most, mut longest) = (0_u64, 0_u64, 0, 0);
        let (mut t_plan, mut t_check, mut t_apply) = (0.0, 0.0, 0.0);
        for d in (0..2500).step_by(97) {
            let wanted = declaration(&says(d % 625), &demands(d / 625 % 2 == 1), d >= 1250);
            for (n, start) in starts.iter().enumerate() {
                let mut machine = Machine::new(start.clone());
                let mut now = NOW;
                let mut rounds = 0;
                loop {
                    let actual = machine.state().clone();
                    let inputs = given.inputs(&actual, &wanted, now);
                    let t = Instant::now();
                    let made = plan(&inputs);
                    t_plan += t.elapsed().as_secs_f64();
                    plans += 1;
                    let t = Instant::now();
                    if let Err(violation) = check(&inputs, &made) {
                        panic!(
                            "{level:?} from {:?} ({}) to {:?} ({}): {violation}\n{made}",
                            says(n % 625).map(|s| s.2),
                            n >= 625,
                            says(d % 625).map(|s| s.2),
                            d / 625
                        );
                    }
                    t_check += t.elapsed().as_secs_f64();
                    steps += made.steps.len() as u64;
                    longest = longest.max(made.steps.len());
                    if made.is_empty() {
                        match made.wake_at {
                            Some(at) => now = at,
                            None => break,
                        }
                    }
                    let t = Instant::now();
                    for step in &made.steps {
                        if let Err(refused) = apply(&mut machine, &step.command, now) {
                            panic!(
                                "{level:?} from {n} {:?} to {:?}: {refused}: {step:?}",
                                says(n % 625).map(|s| s.2),
                                says(d % 625).map(|s| s.2)
                            );
                        }
                    }
                    t_apply += t.elapsed().as_secs_f64();
                    rounds += 1;
                    assert!(
                        rounds < 14,
                        "{level:?} from {:?} ({}) to {:?} ({}): {made}",
                        says(n % 625).map(|s| s.2),
                        n >= 625,
                        says(d % 625).map(|s| s.2),
                        d / 625
                    );
                }
                most = most.max(rounds);
            }
        }
        println!(
            "{level:?}: {plans} plans, {steps} steps, longest {longest}, most rounds {most}; plan {:.1}us check {:.1}us/plan apply {:.2}us/step",
            t_plan * 1e6 / plans as f64,
            t_check * 1e6 / plans as f64,
            t_apply * 1e6 / steps as f64
        );
    }
}
