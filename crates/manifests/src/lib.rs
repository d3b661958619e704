//! Manifest files as a source of objects, and diagnostics as text.

pub mod fuzz;
pub mod report;
pub mod scan;
pub mod yaml;
