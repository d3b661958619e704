//! How objects are named: kind, namespace and name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A namespaced object's name, written `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ObjectName {
    /// The namespace.
    pub namespace: String,
    /// The name within it.
    pub name: String,
}

impl ObjectName {
    /// Puts the two parts together.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl From<ObjectName> for String {
    fn from(name: ObjectName) -> Self {
        name.to_string()
    }
}

/// A text that is not `NAMESPACE/NAME`.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not of the form NAMESPACE/NAME")]
pub struct NotAnObjectName(String);

impl TryFrom<String> for ObjectName {
    type Error = NotAnObjectName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self::new(namespace, name))
            }
            _ => Err(NotAnObjectName(text)),
        }
    }
}

impl std::str::FromStr for ObjectName {
    type Err = NotAnObjectName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

/// An object of any kind, written `Kind NAMESPACE/NAME` (cluster-scoped: `Kind NAME`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// The kind as manifests write it (`NgrokModuleSet`, `Secret`).
    pub kind: String,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectRef {
    /// Puts the three parts together.
    pub fn new(
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}
