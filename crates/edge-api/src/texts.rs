//! Description and metadata: the two free texts that every resource has.

use crate::{error::ApiError, json::Members};

/// The texts as a request gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// The description.
    pub description: Option<String>,
    /// The metadata.
    pub metadata: Option<String>,
}

impl Texts {
    /// Takes both from a body.
    ///
    /// # Errors
    /// When one is not a string.
    pub fn take(members: &mut Members) -> Result<Self, ApiError> {
        Ok(Self {
            description: members.text("description")?,
            metadata: members.text("metadata")?,
        })
    }

    /// Whether neither is given.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let Self {
            description,
            metadata,
        } = self;
        description.is_none() && metadata.is_none()
    }

    /// The same, with an empty text counted as not given. A route PATCH of the official Python
    /// client always carries both texts, empty unless the caller gave them.
    #[must_use]
    pub fn empty_is_absent(self) -> Self {
        let given = |text: &String| !text.is_empty();
        let Self {
            description,
            metadata,
        } = self;
        Self {
            description: description.filter(given),
            metadata: metadata.filter(given),
        }
    }
}
