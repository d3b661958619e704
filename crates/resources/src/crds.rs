//! The CRDs of our kinds.
