//! Who may import whom. The table is the design; the test holds the manifests against it.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the test below holds the manifests against it")
)]
/// A crate, the crates of ours that it may import, and what else it must never pull in directly.
struct Border {
    name: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

/// Anything that reaches sockets, files, clocks or threads.
const IO: &[&str] = &[
    "tokio",
    "hyper",
    "axum",
    "redb",
    "notify",
    "rustls",
    "tracing",
    "getrandom",
    "socket2",
];

const BORDERS: &[Border] = &[
    // 0 core
    Border {
        name: "model",
        ours: &[],
        never: IO,
    },
    // 1 core
    Border {
        name: "resources",
        ours: &[],
        never: IO,
    },
    Border {
        name: "routing",
        ours: &["model"],
        never: IO,
    },
    // 2 core
    Border {
        name: "edge-state",
        ours: &["model", "routing"],
        never: IO,
    },
    Border {
        name: "translation",
        ours: &["model", "resources", "routing"],
        never: IO,
    },
    Border {
        name: "edge-api",
        ours: &["model", "routing"],
        never: IO,
    },
    // 3
    Border {
        name: "plan",
        ours: &["edge-state", "model", "routing"],
        never: IO,
    },
    Border {
        name: "telemetry",
        ours: &["model"],
        never: &["hyper", "redb", "rustls"],
    },
    // 4
    Border {
        name: "controller",
        ours: &[
            "edge-state",
            "model",
            "plan",
            "resources",
            "telemetry",
            "translation",
        ],
        never: &["hyper", "axum", "redb", "rustls", "notify"],
    },
    Border {
        name: "edge-store",
        ours: &["edge-state", "model", "routing", "telemetry"],
        never: &["hyper", "axum", "rustls"],
    },
    // 5 rim
    Border {
        name: "edge-client",
        ours: &[
            "controller",
            "edge-api",
            "edge-state",
            "edge-store",
            "model",
        ],
        never: &["axum", "redb"],
    },
    Border {
        name: "edge-api-server",
        ours: &[
            "edge-api",
            "edge-state",
            "edge-store",
            "model",
            "routing",
            "telemetry",
        ],
        never: &["redb"],
    },
    Border {
        name: "edge-proxy",
        ours: &["edge-state", "edge-store", "model", "routing", "telemetry"],
        never: &["axum", "redb"],
    },
    Border {
        name: "manifests",
        ours: &["controller", "model", "resources"],
        never: &["hyper", "axum", "redb", "rustls"],
    },
    // 6
    Border {
        name: "cli",
        ours: &[
            "controller",
            "edge-api",
            "edge-api-server",
            "edge-client",
            "edge-proxy",
            "edge-state",
            "edge-store",
            "manifests",
            "model",
            "plan",
            "resources",
            "routing",
            "telemetry",
            "translation",
        ],
        never: &[],
    },
    // never shipped
    Border {
        name: "bench-proxy",
        ours: &["edge-proxy", "edge-store"],
        never: &[],
    },
    Border {
        name: "testkit",
        ours: &["model"],
        never: &[],
    },
    Border {
        name: "xtask",
        ours: &[],
        never: &["tokio"],
    },
];

/// Every crate of the workspace, lower layers first.
pub(crate) fn crates() -> impl Iterator<Item = &'static str> {
    BORDERS.iter().map(|border| border.name)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, process::Command};

    use serde_json::Value;

    use super::*;

    /// Normal dependencies by crate, straight from the manifests.
    fn dependencies() -> BTreeMap<String, Vec<String>> {
        let output = Command::new(env!("CARGO"))
            .args([
                "metadata",
                "--no-deps",
                "--format-version",
                "1",
                "--offline",
            ])
            .current_dir(crate::run::root())
            .output()
            .expect("cargo metadata runs");
        let metadata: Value =
            serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
        let packages = metadata["packages"]
            .as_array()
            .expect("packages are a list");
        packages
            .iter()
            .map(|package| {
                let names = package["dependencies"]
                    .as_array()
                    .expect("dependencies are a list");
                let normal = names
                    .iter()
                    .filter(|d| d["kind"].is_null())
                    .filter_map(|d| d["name"].as_str())
                    .map(str::to_owned)
                    .collect();
                (package["name"].as_str().expect("a name").to_owned(), normal)
            })
            .collect()
    }

    #[test]
    fn every_crate_imports_lower_layers_only() {
        let found = dependencies();
        let known: Vec<_> = crates().collect();
        let mut wrong = Vec::new();
        for (name, imports) in &found {
            let Some(border) = BORDERS.iter().find(|b| b.name == name) else {
                wrong.push(format!("{name} is not in the table of borders"));
                continue;
            };
            for import in imports {
                if known.contains(&import.as_str()) && !border.ours.contains(&import.as_str()) {
                    wrong.push(format!("{name} imports {import}"));
                }
                if border.never.contains(&import.as_str()) {
                    wrong.push(format!(
                        "{name} imports {import}, which reaches outside its layer"
                    ));
                }
            }
        }
        for name in known {
            if !found.contains_key(name) {
                wrong.push(format!("{name} stands in the table and is not there"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        let mut seen: Vec<&str> = Vec::new();
        for border in BORDERS {
            for import in border.ours {
                assert!(
                    seen.contains(import),
                    "{} stands below {import}",
                    border.name
                );
            }
            seen.push(border.name);
        }
    }
}
