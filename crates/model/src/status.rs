//! What the controller reports: the document behind `/status`, `portcullis status` and the table
//! of `portcullis up`. Its shape is a promise to programs (`docs/reference/status.md`).

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Severity};

/// What a route does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteState {
    /// Serves its declaration.
    Open,
    /// Serves an earlier declaration, because the present one cannot be applied.
    Held,
    /// Refuses every request.
    Closed,
    /// Withdrawn, and refusing until nothing can be uncovered by its going (R5).
    Removing,
}

impl RouteState {
    /// The word in tables and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Held => "held",
            Self::Closed => "closed",
            Self::Removing => "removing",
        }
    }
}

/// A generation of a route's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// Counts the changes of the declaration, from 1.
    pub generation: u64,
}

/// A reason as programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable name.
    pub code: String,
    /// error or warning.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// `Kind NAMESPACE/NAME`.
    pub object: String,
    /// Field path, or null.
    pub field: Option<String>,
    /// File, or null.
    pub file: Option<String>,
    /// Line, or null.
    pub line: Option<u32>,
    /// What to do, or null.
    pub remedy: Option<String>,
}

impl From<&Diagnostic> for Reason {
    fn from(diagnostic: &Diagnostic) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            code: diagnostic.code.clone(),
            severity: diagnostic.severity,
            message: diagnostic.message.clone(),
            object: diagnostic.object.to_string(),
            field: some(&diagnostic.field),
            file: diagnostic.position.as_ref().map(|p| p.file.clone()),
            line: diagnostic.position.as_ref().map(|p| p.line),
            remedy: some(&diagnostic.remedy),
        }
    }
}

/// The status of one declared (or removed) route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteStatus {
    /// The host pattern.
    pub host: String,
    /// The normalised path.
    pub path: String,
    /// `exact`, `prefix` or `string_prefix`.
    pub path_type: String,
    /// What it does.
    pub state: RouteState,
    /// Since when, RFC 3339.
    pub since: Option<String>,
    /// The generation in force.
    pub serving: Option<Generation>,
    /// The generation declared; null while removing.
    pub wanted: Option<Generation>,
    /// Names of the declared modules, as in the resource.
    pub modules: Vec<String>,
    /// `NAMESPACE/NAME:PORT`.
    pub backend: Option<String>,
    /// The Ingress that declares it.
    pub owner: Option<String>,
    /// Why it is as it is, errors first.
    pub reasons: Vec<Reason>,
}

/// Everything the controller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Every route, by host, then by rank.
    pub routes: Vec<RouteStatus>,
    /// Findings that belong to no route.
    pub diagnostics: Vec<Reason>,
}
