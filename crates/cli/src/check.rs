//! `portcullis check`: would every declared route open? For people before they apply, and for CI.
//!
//! Nothing is served and nothing written: the manifests are translated, planned for, and the plan
//! is carried out on a copy of an edge in memory, an empty one or the one at `--edge`.

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;
use controller::ports::EdgeControl as _;
use edge_state::{
    apply::Machine,
    capabilities::Capabilities,
    command::{Context as Asked, Limits as EdgeLimits},
    state::{EdgeState, Role},
};
use manifests::{
    files::Roots,
    report::{Style, text},
    yaml::Limits,
};
use model::{
    declaration::{Declaration, Outcome, PolicyName},
    diagnostic::{Diagnostic, Severity},
    status::{RouteState, Status},
    time::Timestamp,
};
use plan::{Inputs, Options as PlanOptions, Rejections};
use serde_json::json;
use translation::Input;

use crate::{
    assembly, control,
    flags::{asking::controlled, controlling::DeclarationFlags},
    output::{self, Running},
    paths,
};

/// Rounds of planning after which a copy of an edge must have come to rest.
const ROUNDS: usize = 64;

/// Say whether every declared route would open.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis check -f manifests/
  helm template shop | portcullis check -f - -o json
  portcullis check -f manifests/ --edge https://edge.example.com:4041 --api-key-file key

Exit codes: 0 every declared route would open, 1 not every one, 2 wrong usage, or it cannot be
told (a file that cannot be read, an edge that does not answer).")]
pub(crate) struct Check {
    #[command(flatten)]
    declarations: DeclarationFlags,
    /// Ask this edge what it can enforce and what it has, instead of assuming an empty one
    #[arg(long, value_name = "URL")]
    edge: Option<String>,
    /// File with an API key of the role controller, for --edge
    #[arg(
        long,
        value_name = "FILE",
        requires = "edge",
        conflicts_with = "data_dir"
    )]
    api_key_file: Option<PathBuf>,
    /// The edge's data directory, to find the key in; nothing is written there
    #[arg(long, value_name = "DIR", requires = "edge")]
    data_dir: Option<PathBuf>,
    /// Certificate authorities (PEM) to trust for --edge instead of the system's
    #[arg(long, value_name = "FILE", requires = "edge")]
    edge_ca: Option<PathBuf>,
    /// How findings are printed
    #[arg(short = 'o', long, value_name = "FORM", default_value = "text")]
    output: Running,
}

impl Check {
    /// The exit code, or what was wrong with the usage.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let limits = Limits::default();
        let roots = Roots::open(&self.declarations.files, limits.file_bytes)?;
        let snapshot = manifests::read(&roots, limits);
        let (state, capabilities) = self.edge()?;
        let mut options = self.declarations.options(None);
        options.enforceable = Some(capabilities.enforceable.clone());
        let records = controller::records::records(&state, control::NAME);
        let declared = translation::translate(&Input {
            snapshot: &snapshot,
            records: &records,
            options: &options,
            key: &translation::digest::DigestKey::new(b"check".to_vec()),
        });
        let unchecked = if self.edge.is_some() {
            Vec::new()
        } else {
            unchecked(&declared)
        };
        let status = settle(state, &declared, &capabilities);
        let open = status
            .routes
            .iter()
            .filter(|r| r.state == RouteState::Open)
            .count();
        let errors = declared
            .diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error);
        // A route that only an edge could judge does not count against the manifests.
        let closed = status.routes.iter().any(|r| {
            r.state != RouteState::Open
                && !unchecked
                    .iter()
                    .any(|(host, path, _)| *host == r.host && *path == r.path)
        });
        match self.output {
            Running::Text => print_text(&declared.diagnostics, &status, &unchecked, open)?,
            Running::Json => output::print(&format!(
                "{}\n",
                json!({
                    "routes": status.routes,
                    "diagnostics": manifests::report::reasons(&declared.diagnostics),
                    "not_checked": unchecked
                        .iter()
                        .map(|(host, path, what)| json!({"host": host, "path": path, "what": what}))
                        .collect::<Vec<_>>(),
                })
            ))?,
        }
        Ok(if errors || closed {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// The edge to check against: the one at `--edge`, or an empty one like ours.
    fn edge(&self) -> anyhow::Result<(EdgeState, Capabilities)> {
        let Some(url) = &self.edge else {
            return Ok((EdgeState::default(), assembly::capabilities()));
        };
        let key_file = match &self.api_key_file {
            Some(file) => file.clone(),
            None => paths::controller_key(&paths::data_dir(self.data_dir.as_deref(), false)?),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let edge = controlled(url, key_file, self.edge_ca.clone())?;
            let capabilities = edge
                .capabilities()
                .await
                .with_context(|| format!("--edge {url}"))?;
            let reading = edge.read().await.with_context(|| format!("--edge {url}"))?;
            Ok((reading.state, capabilities))
        })
    }
}

/// What only an edge can tell: whether it has the IP policies that are named by id.
fn unchecked(declared: &Declaration) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (host, on_host) in &declared.hosts {
        for (place, route) in &on_host.routes {
            let Outcome::Complete(set) = &route.outcome else {
                continue;
            };
            let policies = set.modules.ip_restriction.iter().flat_map(|m| &m.policies);
            for policy in policies {
                if let PolicyName::AtEdge(id) = policy {
                    let what = format!("whether the edge has the IP policy {id}");
                    found.push((host.to_string(), place.path.clone(), what));
                }
            }
        }
    }
    found
}

/// Plans and carries out on a copy until nothing is left to do; how everything stands then.
fn settle(state: EdgeState, declared: &Declaration, capabilities: &Capabilities) -> Status {
    let mut machine = Machine::new(state);
    let mut rejections = Rejections::default();
    let limits = EdgeLimits::default();
    let options = PlanOptions::default();
    let now = Timestamp(0);
    let mut plan = plan::Plan::default();
    for _ in 0..ROUNDS {
        let inputs = Inputs {
            actual: machine.state(),
            declared,
            now,
            options: &options,
            capabilities,
            rejections: &rejections,
            controller: control::NAME,
            only_close: false,
        };
        plan = plan::plan(&inputs);
        if plan.is_empty() {
            break;
        }
        let mut done = vec![false; plan.steps.len()];
        for (number, step) in plan.steps.iter().enumerate() {
            if !step
                .requires
                .iter()
                .all(|earlier| done.get(*earlier).copied().unwrap_or(false))
            {
                continue;
            }
            let context = Asked {
                now,
                role: Role::Controller,
                term: None,
                enforceable: &capabilities.enforceable,
                limits: &limits,
            };
            match machine.apply(&step.command, &context) {
                Ok(_) => done[number] = true,
                Err(refused) => rejections.remember(step, None, &refused.to_string()),
            }
        }
    }
    let mut status = controller::status::status(
        declared,
        &plan.report,
        machine.state(),
        control::format_instant,
    );
    for route in &mut status.routes {
        // Nothing has been since any time: this is what would be.
        route.since = None;
    }
    status
}

fn print_text(
    diagnostics: &[Diagnostic],
    status: &Status,
    unchecked: &[(String, String, String)],
    open: usize,
) -> anyhow::Result<()> {
    let style = if std::io::stdout().is_terminal() {
        Style::COLOURED
    } else {
        Style::PLAIN
    };
    let mut out = text(diagnostics, style);
    for (host, path, what) in unchecked {
        out.push_str(&format!("not checked: {host}{path}: {what}\n"));
    }
    let all = status.routes.len();
    let plural = if all == 1 { "route" } else { "routes" };
    out.push_str(&format!("{open} of {all} declared {plural} would open\n"));
    output::print(&out)
}
