//! The state in redb: one table for each kind of thing, id to JSON, and a table of numbers.
//!
//! Guarantees: a save is one transaction, on disk when it returns; a load gives a whole state or
//! an error. Only what changed since the last save is written, found by pointer.

use std::{collections::BTreeMap, sync::Arc};

use edge_state::{difference::differences, state::EdgeState, verify::verify};
use redb::{
    Builder, Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageBackend, TableDefinition, WriteTransaction,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::disk::Disk;

/// What this code writes. A newer number is refused: it may mean protections unknown here (R10).
const FORMAT: u64 = 1;
/// The state is small and lives in memory; redb needs no more than its tree nodes.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

type Objects = TableDefinition<'static, &'static str, &'static [u8]>;

const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const EDGES: Objects = TableDefinition::new("edges");
const BACKENDS: Objects = TableDefinition::new("backends");
const IP_POLICIES: Objects = TableDefinition::new("ip_policies");
const CERTIFICATES: Objects = TableDefinition::new("certificates");
const DOMAINS: Objects = TableDefinition::new("domains");
const KEYS: Objects = TableDefinition::new("keys");

/// Why a state was not read or saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// It is there and makes no sense: nobody may serve it in part.
    #[error("{0}")]
    Unreadable(String),
    /// The disk failed, or is full.
    #[error("{0}")]
    Disk(String),
}

/// Sorts redb's errors by cure: damage is for people, everything else is worth another try.
fn sort(error: impl Into<redb::Error>) -> DatabaseError {
    match error.into() {
        error @ (redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::TableTypeMismatch { .. }) => DatabaseError::Unreadable(error.to_string()),
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            DatabaseError::Unreadable(error.to_string())
        }
        error => DatabaseError::Disk(error.to_string()),
    }
}

/// Opens the database, checks every page of it, and reads the state. Where there is none, makes
/// one beside its place first, so that a crash leaves none rather than half of one.
pub(crate) fn open<D: Disk>(disk: &mut D) -> Result<(Database, EdgeState), DatabaseError> {
    let failed = |error: std::io::Error| DatabaseError::Disk(error.to_string());
    if !disk.has_database().map_err(failed)? {
        let nothing = EdgeState::default();
        save(&on(disk.draft().map_err(failed)?)?, &nothing, &nothing)?;
        disk.adopt_draft().map_err(failed)?;
    }
    let database = on(disk.database().map_err(failed)?)?;
    let state = load(&database)?;
    if let Err(findings) = verify(&state) {
        let list: Vec<_> = findings.iter().map(ToString::to_string).collect();
        return Err(DatabaseError::Unreadable(list.join("; ")));
    }
    Ok((database, state))
}

fn on(backend: impl StorageBackend) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder
        .set_cache_size(CACHE_BYTES)
        .set_check_integrity_on_open(true);
    builder.create_with_backend(backend).map_err(sort)
}

fn load(database: &Database) -> Result<EdgeState, DatabaseError> {
    let transaction = database.begin_read().map_err(sort)?;
    let numbers = transaction.open_table(NUMBERS).map_err(sort)?;
    let number = |name: &str| {
        let found = numbers.get(name).map_err(sort)?;
        let missing = || DatabaseError::Unreadable(format!("it has no {name}"));
        found.map(|value| value.value()).ok_or_else(missing)
    };
    let format = number("format")?;
    if format != FORMAT {
        return Err(DatabaseError::Unreadable(format!(
            "it has format {format}, and this version knows format {FORMAT} only"
        )));
    }
    Ok(EdgeState {
        revision: number("revision")?,
        term: number("term")?,
        edges: load_objects(&transaction, EDGES)?,
        backends: load_objects(&transaction, BACKENDS)?,
        ip_policies: load_objects(&transaction, IP_POLICIES)?,
        certificates: load_objects(&transaction, CERTIFICATES)?,
        domains: load_objects(&transaction, DOMAINS)?,
        keys: load_objects(&transaction, KEYS)?,
    })
}

fn load_objects<K, V>(
    transaction: &ReadTransaction,
    table: Objects,
) -> Result<BTreeMap<K, Arc<V>>, DatabaseError>
where
    K: TryFrom<String, Error: std::fmt::Display> + Ord,
    V: DeserializeOwned,
{
    let table = transaction.open_table(table).map_err(sort)?;
    let mut objects = BTreeMap::new();
    for row in table.iter().map_err(sort)? {
        let (key, value) = row.map_err(sort)?;
        let about = |error: &dyn std::fmt::Display| {
            DatabaseError::Unreadable(format!("{}: {error}", key.value()))
        };
        let id = K::try_from(key.value().to_owned()).map_err(|error| about(&error))?;
        let object = serde_json::from_slice(value.value()).map_err(|error| about(&error))?;
        objects.insert(id, Arc::new(object));
    }
    Ok(objects)
}

/// Writes what differs between two states, and waits until it is on the disk. After an error it
/// is not known which of the two is there: the database must be opened and read again.
pub(crate) fn save(
    database: &Database,
    old: &EdgeState,
    new: &EdgeState,
) -> Result<(), DatabaseError> {
    let EdgeState {
        revision,
        term,
        edges,
        backends,
        ip_policies,
        certificates,
        domains,
        keys,
    } = new;
    let mut transaction = database.begin_write().map_err(sort)?;
    transaction
        .set_durability(Durability::Immediate)
        .map_err(sort)?;
    {
        let mut numbers = transaction.open_table(NUMBERS).map_err(sort)?;
        for (name, number) in [("format", FORMAT), ("revision", *revision), ("term", *term)] {
            numbers.insert(name, number).map_err(sort)?;
        }
    }
    save_objects(&transaction, EDGES, &old.edges, edges)?;
    save_objects(&transaction, BACKENDS, &old.backends, backends)?;
    save_objects(&transaction, IP_POLICIES, &old.ip_policies, ip_policies)?;
    save_objects(&transaction, CERTIFICATES, &old.certificates, certificates)?;
    save_objects(&transaction, DOMAINS, &old.domains, domains)?;
    save_objects(&transaction, KEYS, &old.keys, keys)?;
    transaction.commit().map_err(sort)
}

fn save_objects<K, V>(
    transaction: &WriteTransaction,
    table: Objects,
    old: &BTreeMap<K, Arc<V>>,
    new: &BTreeMap<K, Arc<V>>,
) -> Result<(), DatabaseError>
where
    K: Ord + ToString,
    V: Serialize + PartialEq,
{
    let mut table = transaction.open_table(table).map_err(sort)?;
    for (id, _, object) in differences(old, new) {
        let id = id.to_string();
        let id = id.as_str();
        match object {
            None => drop(table.remove(id).map_err(sort)?),
            Some(object) => {
                let json = serde_json::to_vec(object)
                    .map_err(|error| DatabaseError::Disk(error.to_string()))?;
                table.insert(id, json.as_slice()).map_err(sort)?;
            }
        }
    }
    Ok(())
}
