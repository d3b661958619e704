//! Instants and spans as plain numbers: the core has no clock, time enters as an argument.

use serde::{Deserialize, Serialize};

/// An instant: milliseconds since the Unix epoch, as the edge's clock reads.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// A length of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Timestamp {
    /// How long ago `earlier` was; zero when it lies in the future (clocks jump, ages must not).
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` later, capped at the end of time.
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A whole number of seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Both together, capped at the longest.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// What is left of it when `spent` is gone; nothing when that is more.
    #[must_use]
    pub const fn minus(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }
}
