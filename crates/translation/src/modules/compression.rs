//! `compression`: only on or off. Off is the same as absent, and never comes here.

use model::module::Switch;
use resources::module_set::Compression;

use crate::preflight::{Judge, Written};

pub(crate) fn judge(_: &mut Judge<'_, '_>, _: &Written<'_, &Compression>) -> Option<Switch> {
    Some(Switch { enabled: true })
}
