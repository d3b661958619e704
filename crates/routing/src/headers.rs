//! What of a client's headers reaches a backend (R16).
