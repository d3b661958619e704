//! IP restriction: pooled policies, compiled to the set of addresses that pass.
//!
//! An address passes when an allow rule contains it and no deny rule does (edge API,
//! `ip_restriction`). That set is computed once, as sorted ranges without overlap, so that a
//! request costs one binary search however many rules there are. Nothing allowed: nobody passes
//! (R14). Addresses are canonical: rules within `::ffff:0:0/96` are rules about IPv4, and no
//! other IPv6 rule says anything about an IPv4 address (R16).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use model::module::{IpAction, IpRules};

/// A set of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl AddressSet {
    /// The addresses that these policies, pooled, let pass.
    #[must_use]
    pub fn admitted_by(policies: &[IpRules]) -> Self {
        let (mut allowed, mut denied) = (Pool::default(), Pool::default());
        for IpRules(rules) in policies {
            for (network, action) in rules {
                match action {
                    IpAction::Allow => allowed.add(*network),
                    IpAction::Deny => denied.add(*network),
                }
            }
        }
        Self {
            v4: Ranges::merged(allowed.v4).without(&Ranges::merged(denied.v4)),
            v6: Ranges::merged(allowed.v6).without(&Ranges::merged(denied.v6)),
        }
    }

    /// Whether a canonical address is in the set.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4.contains(v4.to_bits()),
            IpAddr::V6(v6) => self.v6.contains(v6.to_bits()),
        }
    }

    /// The addresses in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            v4: self.v4.intersection(&other.v4),
            v6: self.v6.intersection(&other.v6),
        }
    }

    /// Whether nobody passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.0.is_empty() && self.v6.0.is_empty()
    }
}

#[derive(Default)]
struct Pool {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Pool {
    fn add(&mut self, network: IpNet) {
        match network {
            IpNet::V4(net) => self
                .v4
                .push((net.network().to_bits(), net.broadcast().to_bits())),
            IpNet::V6(net) => match (mapped(net.network()), mapped(net.broadcast())) {
                (Some(first), Some(last)) => self.v4.push((first.to_bits(), last.to_bits())),
                (_, _) => self
                    .v6
                    .push((net.network().to_bits(), net.broadcast().to_bits())),
            },
        }
    }
}

const fn mapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    address.to_ipv4_mapped()
}

/// Sorted ranges, both ends included, with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges<N>(Vec<(N, N)>);

/// What ranges need of an address.
trait Number: Copy + Ord {
    fn next(self) -> Option<Self>;
    fn previous(self) -> Option<Self>;
}

impl Number for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
    fn previous(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

impl Number for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
    fn previous(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

impl<N: Number> Ranges<N> {
    fn merged(mut ranges: Vec<(N, N)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(N, N)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                // No number after the previous end: that range reaches to the end of all numbers.
                Some((_, end)) if end.next().is_none_or(|next| first <= next) => {
                    *end = last.max(*end)
                }
                Some(_) | None => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    fn contains(&self, number: N) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after
            .checked_sub(1)
            .and_then(|at| self.0.get(at))
            .is_some_and(|(_, last)| number <= *last)
    }

    fn without(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.0.iter().peekable();
        for &(first, last) in &self.0 {
            let mut start = Some(first);
            while holes.next_if(|(_, hole_end)| *hole_end < first).is_some() {}
            let mut ahead = holes.clone();
            while let (Some(from), Some(&&(hole_start, hole_end))) = (start, ahead.peek()) {
                if hole_start > last {
                    break;
                }
                if let Some(before) = hole_start.previous().filter(|before| from <= *before) {
                    left.push((from, before));
                }
                start = hole_end.next();
                ahead.next();
            }
            if let Some(from) = start.filter(|from| *from <= last) {
                left.push((from, last));
            }
        }
        Self(left)
    }

    fn intersection(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(left_first, left_last)), Some(&&(right_first, right_last))) =
            (left.peek(), right.peek())
        {
            let (first, last) = (left_first.max(right_first), left_last.min(right_last));
            if first <= last {
                both.push((first, last));
            }
            if left_last <= right_last {
                left.next()
            } else {
                right.next()
            };
        }
        Self(both)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(entries: &[(&str, IpAction)]) -> IpRules {
        IpRules(
            entries
                .iter()
                .map(|(net, action)| (net.parse().expect("a network"), *action))
                .collect(),
        )
    }

    fn passes(policies: &[IpRules], address: &str) -> bool {
        AddressSet::admitted_by(policies).contains(address.parse().expect("an address"))
    }

    #[test]
    fn nothing_allowed_lets_nobody_pass() {
        assert!(AddressSet::admitted_by(&[]).is_empty());
        assert!(AddressSet::admitted_by(&[IpRules::default()]).is_empty());
        assert!(AddressSet::admitted_by(&[rules(&[("0.0.0.0/0", IpAction::Deny)])]).is_empty());
    }

    #[test]
    fn deny_wins_across_pooled_policies() {
        let all = [
            rules(&[("10.0.0.0/8", IpAction::Allow), ("::/0", IpAction::Allow)]),
            rules(&[
                ("10.1.0.0/16", IpAction::Deny),
                ("2001:db8::/32", IpAction::Deny),
            ]),
        ];
        for (address, expected) in [
            ("10.0.0.0", true),
            ("10.0.255.255", true),
            ("10.1.0.0", false),
            ("10.1.255.255", false),
            ("10.2.0.0", true),
            ("11.0.0.0", false),
            ("2001:db7:ffff::1", true),
            ("2001:db8::1", false),
            ("2001:db9::", true),
        ] {
            assert_eq!(passes(&all, address), expected, "{address}");
        }
    }

    #[test]
    fn mapped_networks_are_about_ipv4_and_other_ipv6_networks_are_not() {
        let mapped = [rules(&[
            ("::ffff:10.0.0.0/104", IpAction::Allow),
            ("::ffff:10.9.0.0/112", IpAction::Deny),
        ])];
        assert!(passes(&mapped, "10.1.2.3") && !passes(&mapped, "10.9.2.3"));
        let six = [rules(&[("::/0", IpAction::Allow)])];
        assert!(!passes(&six, "10.1.2.3") && passes(&six, "::1"));
    }

    #[test]
    fn the_ends_of_all_addresses_are_no_special_case() {
        let all = [rules(&[
            ("0.0.0.0/0", IpAction::Allow),
            ("255.255.255.255/32", IpAction::Deny),
            ("0.0.0.0/32", IpAction::Deny),
        ])];
        assert!(!passes(&all, "0.0.0.0") && passes(&all, "0.0.0.1"));
        assert!(!passes(&all, "255.255.255.255") && passes(&all, "255.255.255.254"));
        let everyone = [rules(&[
            ("0.0.0.0/0", IpAction::Allow),
            ("255.255.255.255/32", IpAction::Allow),
        ])];
        assert!(passes(&everyone, "255.255.255.255"));
    }

    /// Networks crowded into few addresses, so that they nest and touch.
    fn networks() -> impl Strategy<Value = IpNet> {
        let v4 = (0..=8_u32, 24..=32_u8).prop_map(|(low, length)| {
            IpNet::new(
                IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | (low * 31))),
                length,
            )
            .expect("a length")
            .trunc()
        });
        let v6 = (0..=8_u128, 120..=128_u8).prop_map(|(low, length)| {
            IpNet::new(IpAddr::from(Ipv6Addr::from_bits(low * 31)), length)
                .expect("a length")
                .trunc()
        });
        let mapped = (0..=8_u32, 120..=128_u8).prop_map(|(low, length)| {
            let address = Ipv4Addr::from_bits(0x0a00_0000 | (low * 31)).to_ipv6_mapped();
            IpNet::new(IpAddr::from(address), length)
                .expect("a length")
                .trunc()
        });
        let wide = prop::sample::select(vec![
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/8",
            "128.0.0.0/1",
            "8000::/1",
        ])
        .prop_map(|net| net.parse().expect("a network"));
        prop_oneof![4 => v4, 4 => v6, 2 => mapped, 1 => wide]
    }

    fn policies() -> impl Strategy<Value = Vec<IpRules>> {
        let action = prop_oneof![Just(IpAction::Allow), Just(IpAction::Deny)];
        prop::collection::vec(
            prop::collection::btree_map(networks(), action, 0..12).prop_map(IpRules),
            0..4,
        )
    }

    /// The rule as the edge API words it, asked of every rule in turn.
    fn linear(policies: &[IpRules], address: IpAddr) -> bool {
        let matched = |wanted| {
            policies
                .iter()
                .flat_map(|IpRules(rules)| rules)
                .any(|(net, action)| {
                    let mapped_too = match address {
                        IpAddr::V4(v4) => {
                            net.prefix_len() >= 96 && net.contains(&IpAddr::V6(v4.to_ipv6_mapped()))
                        }
                        IpAddr::V6(_) => false,
                    };
                    *action == wanted && (net.contains(&address) || mapped_too)
                })
        };
        matched(IpAction::Allow) && !matched(IpAction::Deny)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_set_is_what_every_rule_in_turn_says(pooled in policies(), further in policies()) {
            let (set, other) = (AddressSet::admitted_by(&pooled), AddressSet::admitted_by(&further));
            let both = set.intersection(&other);
            let v4 = (0..=300_u32).map(|low| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 | low)));
            let v6 = (0..=300_u128).map(|low| IpAddr::from(Ipv6Addr::from_bits(low)));
            let ends = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST].map(IpAddr::from);
            let ends_v6 = [Ipv6Addr::from_bits(u128::MAX), Ipv6Addr::from_bits(1 << 127)].map(IpAddr::from);
            for address in v4.chain(v6).chain(ends).chain(ends_v6) {
                let (one, two) = (linear(&pooled, address), linear(&further, address));
                prop_assert_eq!(set.contains(address), one, "{}", address);
                prop_assert_eq!(both.contains(address), one && two, "{}", address);
            }
        }
    }
}
