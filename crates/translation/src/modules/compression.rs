//! `compression`: only on or off. Off is the same as absent, and needs no edge that can do it.

use model::module::{ModuleKind, Switch};
use resources::module_set::Compression;

use crate::preflight::{Judge, Written};

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: Option<&Written<'_, &Compression>>,
) -> Option<Switch> {
    let written = written.filter(|written| written.content.enabled)?;
    judge.names(ModuleKind::Compression, written, written.content);
    Some(Switch { enabled: true })
}
