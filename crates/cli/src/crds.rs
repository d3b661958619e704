//! `portcullis crds`: the custom resource definitions.

use crate::output;

pub(crate) fn run() -> anyhow::Result<()> {
    let documents: Vec<String> = resources::crds::crds()
        .into_iter()
        .map(|(_, yaml)| yaml)
        .collect();
    output::print(&documents.join("---\n"))
}
