//! `portcullis get`: what an edge has, whoever made it.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use edge_api::{
    backend::{HttpResponse, StaticAddress, TunnelGroup},
    domain::ReservedDomain,
    edge::HttpsEdge,
    ip_policy::{IpPolicy, IpPolicyRule},
    route::HttpsRoute,
};
use edge_client::rest::RestClient;
use model::module::{IpAction, TlsVersion};
use serde::Serialize;

use crate::{
    flags::asking::{AskFlags, ask},
    output::{
        self, Form,
        table::{BOLD, columns},
    },
};

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Hosts with their TLS demands
    Edges,
    /// Paths with their modules and backends
    Routes,
    /// Who answers, and where
    Backends,
    /// Reserved hosts and their owners
    Domains,
    /// IP policies and their rules
    IpPolicies,
}

/// Show what an edge has.
#[derive(Args)]
#[command(after_help = "\
Examples:
  portcullis get routes
  portcullis get edges -o json --edge https://edge.example.com:4041 --api-key-file key")]
pub(crate) struct Get {
    /// What to show
    what: What,
    /// The form of the answer
    #[arg(short = 'o', long, value_name = "FORM", default_value = "table")]
    output: Form,
    #[command(flatten)]
    ask: AskFlags,
}

impl Get {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = self.ask.client()?;
        ask(async move {
            match self.what {
                What::Edges => show(
                    self.output,
                    &client.all::<HttpsEdge>().await?,
                    &EDGES,
                    edge_row,
                ),
                What::Routes => {
                    let edges = client.all::<HttpsEdge>().await?;
                    let services = services(&client).await?;
                    show(self.output, &routes(&edges), &ROUTES, |route| {
                        route_row(route, &services)
                    })
                }
                What::Backends => {
                    let backends = backends(&client).await?;
                    show(self.output, &backends, &BACKENDS, backend_row)
                }
                What::Domains => show(
                    self.output,
                    &client.all::<ReservedDomain>().await?,
                    &DOMAINS,
                    domain_row,
                ),
                What::IpPolicies => {
                    let policies = policies(&client).await?;
                    show(self.output, &policies, &POLICIES, policy_row)
                }
            }
        })
    }
}

/// Column titles with the least that a column may be cut to.
type Columns<const N: usize> = [(&'static str, usize); N];

const EDGES: Columns<5> = [
    ("HOSTS", 30),
    ("ROUTES", 6),
    ("TLS MIN", 7),
    ("OWNER", 10),
    ("GENERATION", 10),
];
const ROUTES: Columns<6> = [
    ("HOST", 18),
    ("PATH", 10),
    ("STATE", 8),
    ("MODULES", 12),
    ("BACKEND", 14),
    ("OWNER", 12),
];
const BACKENDS: Columns<4> = [
    ("ID", 33),
    ("ANSWERS FOR", 16),
    ("ENDPOINTS", 16),
    ("OWNER", 10),
];
const DOMAINS: Columns<4> = [
    ("HOST", 30),
    ("NAMESPACE", 12),
    ("UNDECLARED SINCE", 20),
    ("OWNER", 10),
];
const POLICIES: Columns<4> = [("ID", 31), ("NAME", 16), ("RULES", 16), ("OWNER", 10)];

fn show<T: Serialize, const N: usize>(
    form: Form,
    items: &[T],
    titles: &Columns<N>,
    row: impl Fn(&T) -> [String; N],
) -> anyhow::Result<()> {
    match form {
        Form::Json => output::print(&format!("{}\n", serde_json::to_string_pretty(items)?)),
        Form::Yaml => output::print(&resources::yaml::document(&serde_json::to_value(items)?)),
        Form::Table => {
            let mut rows = vec![titles.map(|(title, _)| title.to_owned()).to_vec()];
            rows.extend(items.iter().map(|item| row(item).to_vec()));
            let mut lines = columns(&rows, &titles.map(|(_, width)| width));
            if let Some(head) = lines.first_mut() {
                *head = format!("{BOLD}{head}{BOLD:#}");
            }
            output::print_lines(&lines)
        }
    }
}

fn owner(controller: Option<&String>) -> String {
    controller.cloned().unwrap_or_else(|| "API".to_owned())
}

fn edge_row(edge: &HttpsEdge) -> [String; 5] {
    let hosts: Vec<_> = edge
        .hostports
        .iter()
        .map(|h| h.trim_end_matches(":443"))
        .collect();
    let minimum = edge
        .tls_termination
        .as_ref()
        .filter(|tls| tls.enabled)
        .and_then(|tls| tls.min_version);
    [
        hosts.join(", "),
        edge.routes.len().to_string(),
        match minimum {
            None | Some(TlsVersion::V1_2) => "1.2".to_owned(),
            Some(TlsVersion::V1_3) => "1.3".to_owned(),
        },
        owner(edge.portcullis.controller.as_ref()),
        edge.portcullis.generation.to_string(),
    ]
}

/// A route with the hosts that it is on.
#[derive(Serialize)]
struct RouteOnHost<'e> {
    hosts: Vec<&'e str>,
    #[serde(flatten)]
    route: &'e HttpsRoute,
}

fn routes(edges: &[HttpsEdge]) -> Vec<RouteOnHost<'_>> {
    edges
        .iter()
        .flat_map(|edge| {
            let hosts: Vec<&str> = edge
                .hostports
                .iter()
                .map(|h| h.trim_end_matches(":443"))
                .collect();
            edge.routes.iter().map(move |route| RouteOnHost {
                hosts: hosts.clone(),
                route,
            })
        })
        .collect()
}

/// The Service ports that tunnel groups stand for, by backend id.
async fn services(client: &RestClient) -> anyhow::Result<BTreeMap<String, String>> {
    let groups = client.all::<TunnelGroup>().await?;
    Ok(groups
        .into_iter()
        .filter_map(|g| Some((g.id, g.portcullis.service?)))
        .collect())
}

fn route_row(on_host: &RouteOnHost<'_>, services: &BTreeMap<String, String>) -> [String; 6] {
    let RouteOnHost { hosts, route } = on_host;
    let open = route.backend.as_ref().filter(|backend| backend.enabled);
    let mut modules = Vec::new();
    if route
        .ip_restriction
        .as_ref()
        .is_some_and(|module| module.enabled)
    {
        modules.push("ipRestriction");
    }
    let headers = [&route.request_headers, &route.response_headers];
    if headers
        .iter()
        .any(|module| module.as_ref().is_some_and(|module| module.enabled))
    {
        modules.push("headers");
    }
    let path = match route.match_type.as_str() {
        "exact_path" => format!("={}", route.path),
        "path_prefix" => format!("{}*", route.path),
        _ => route.path.clone(),
    };
    [
        hosts.join(","),
        path,
        route
            .portcullis
            .phase
            .clone()
            .unwrap_or_else(|| if open.is_some() { "open" } else { "closed" }.to_owned()),
        if modules.is_empty() {
            "-".to_owned()
        } else {
            modules.join(",")
        },
        open.map_or_else(
            || "-".to_owned(),
            |backend| {
                services
                    .get(&backend.backend.id)
                    .unwrap_or(&backend.backend.id)
                    .clone()
            },
        ),
        route
            .portcullis
            .owner
            .clone()
            .unwrap_or_else(|| "API".to_owned()),
    ]
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum AnyBackend {
    TunnelGroup(TunnelGroup),
    HttpResponse(HttpResponse),
    Static(StaticAddress),
}

async fn backends(client: &RestClient) -> anyhow::Result<Vec<AnyBackend>> {
    let mut all = Vec::new();
    all.extend(client.all().await?.into_iter().map(AnyBackend::TunnelGroup));
    all.extend(
        client
            .all()
            .await?
            .into_iter()
            .map(AnyBackend::HttpResponse),
    );
    all.extend(client.all().await?.into_iter().map(AnyBackend::Static));
    Ok(all)
}

fn backend_row(backend: &AnyBackend) -> [String; 4] {
    let (id, what, extras) = match backend {
        AnyBackend::TunnelGroup(group) => {
            let labels = || {
                let pairs: Vec<_> = group
                    .labels
                    .iter()
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect();
                pairs.join(",")
            };
            (
                &group.id,
                group.portcullis.service.clone().unwrap_or_else(labels),
                &group.portcullis,
            )
        }
        AnyBackend::HttpResponse(fixed) => (
            &fixed.id,
            format!("fixed answer {}", fixed.status_code),
            &fixed.portcullis,
        ),
        AnyBackend::Static(one) => (&one.id, one.address.clone(), &one.portcullis),
    };
    let endpoints: Vec<_> = extras.endpoints.iter().map(ToString::to_string).collect();
    let endpoints = if endpoints.is_empty() {
        "-".to_owned()
    } else {
        endpoints.join(",")
    };
    [
        id.clone(),
        what,
        endpoints,
        owner(extras.controller.as_ref()),
    ]
}

fn domain_row(domain: &ReservedDomain) -> [String; 4] {
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [
        domain.domain.clone(),
        dash(&domain.portcullis.namespace),
        dash(&domain.portcullis.undeclared_since),
        owner(domain.portcullis.controller.as_ref()),
    ]
}

#[derive(Serialize)]
struct PolicyWithRules {
    #[serde(flatten)]
    policy: IpPolicy,
    rules: Vec<IpPolicyRule>,
}

async fn policies(client: &RestClient) -> anyhow::Result<Vec<PolicyWithRules>> {
    let rules = client.all::<IpPolicyRule>().await?;
    let policies = client.all::<IpPolicy>().await?;
    Ok(policies
        .into_iter()
        .map(|policy| {
            let own = rules
                .iter()
                .filter(|rule| rule.ip_policy.id == policy.id)
                .cloned()
                .collect();
            PolicyWithRules { policy, rules: own }
        })
        .collect())
}

fn policy_row(with_rules: &PolicyWithRules) -> [String; 4] {
    let PolicyWithRules { policy, rules } = with_rules;
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| match rule.action {
            IpAction::Allow => format!("allow {}", rule.cidr),
            IpAction::Deny => format!("deny {}", rule.cidr),
        })
        .collect();
    let name = if policy.metadata.is_empty() {
        &policy.description
    } else {
        &policy.metadata
    };
    [
        policy.id.clone(),
        name.clone(),
        if rules.is_empty() {
            "none".to_owned()
        } else {
            rules.join(", ")
        },
        owner(policy.portcullis.controller.as_ref()),
    ]
}
