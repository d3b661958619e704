//! The reference page names every code, with its status, and every extension.

use std::collections::BTreeMap;

use edge_api::{error::Code, extension::extensions, module::ModuleName};
use edge_state::apply::RefusalCode;

const PAGE: &str = include_str!("../../../../docs/reference/edge-api.md");

#[test]
fn the_reference_has_every_code_and_no_other() {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let code = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        Some((code, cells.next()?.parse::<u16>().ok()?))
    });
    let told: BTreeMap<_, _> = rows.collect();
    let mut known = BTreeMap::new();
    let of_calls = Code::ALL.iter().map(|code| (code.text(), code.status()));
    let of_states = RefusalCode::ALL
        .iter()
        .map(|code| (code.code(), code.status()));
    for (code, status) in of_calls.chain(of_states) {
        let other = known.insert(code, status);
        assert!(
            other.is_none_or(|other| other == status),
            "{code} has two statuses"
        );
    }
    assert_eq!(told, known);
}

#[test]
fn the_reference_names_every_extension_and_module() {
    for (name, call) in extensions() {
        let path = call
            .split(' ')
            .find(|word| word.starts_with('/'))
            .unwrap_or_default();
        assert!(PAGE.contains(path.trim_end_matches(',')), "{name}: {path}");
    }
    for module in ModuleName::OF_ROUTES
        .into_iter()
        .chain(ModuleName::OF_EDGES)
    {
        assert!(
            PAGE.contains(&format!("`{}`", module.text())) || PAGE.contains(module.text()),
            "{module:?}"
        );
    }
}
