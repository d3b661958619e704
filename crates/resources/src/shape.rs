//! What may stand in a document.
