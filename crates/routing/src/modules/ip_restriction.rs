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
