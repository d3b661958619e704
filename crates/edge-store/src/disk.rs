//! Where the state lies: the data directory, or what a test puts in its place to cut it off.

use std::io;

use redb::StorageBackend;

/// Room for the database and for the journal of closings.
pub(crate) trait Disk: Send + 'static {
    /// What the database is stored on.
    type Backend: StorageBackend;

    /// Whether there is a database.
    fn has_database(&self) -> io::Result<bool>;

    /// Room for a database that is being made, empty; left over from a crash, it counts for nothing.
    fn draft(&mut self) -> io::Result<Self::Backend>;

    /// Makes the draft the database, in one step.
    fn adopt_draft(&mut self) -> io::Result<()>;

    /// Opens the database's storage. Called again after an error, when the earlier one is closed.
    fn database(&mut self) -> io::Result<Self::Backend>;

    /// The whole journal.
    fn read_journal(&mut self) -> io::Result<Vec<u8>>;

    /// Writes into the journal, in place, and returns when it is on the disk.
    fn write_journal(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()>;
}
