//! Ingress and IngressClass (`networking.k8s.io/v1`), whole: what is legal there is little.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules that send requests to Services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ingress {
    /// The rules.
    pub spec: IngressSpec,
}

/// The rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpec {
    /// The class whose controller is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Who answers what no rule matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_backend: Option<IngressBackend>,
    /// Rules by host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<IngressRule>,
    /// Serving certificates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<IngressTls>,
}

/// The paths of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IngressRule {
    /// The host; empty or absent means every host, which an edge does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<IngressHttp>,
}

/// Paths and their backends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IngressHttp {
    /// The paths.
    #[schemars(length(min = 1))]
    pub paths: Vec<IngressPath>,
}

/// How a path is compared.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum PathType {
    /// The whole path.
    Exact,
    /// By path elements from the left.
    Prefix,
    /// As the controller likes; here as Prefix.
    ImplementationSpecific,
}

/// A path and its backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressPath {
    /// The path; absent or empty means every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How it is compared.
    pub path_type: PathType,
    /// Who answers.
    pub backend: IngressBackend,
}

/// Who answers: a Service or another object, exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum IngressBackend {
    /// A Service in the same namespace.
    Service(IngressServiceBackend),
    /// Another object in the same namespace.
    Resource(IngressResourceBackend),
}

/// A Service's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IngressServiceBackend {
    /// Name of the Service.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its port.
    pub port: IngressServicePort,
}

/// A port, by name or by number, exactly one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum IngressServicePort {
    /// Its name.
    Name(#[schemars(length(min = 1))] String),
    /// Its number.
    Number(#[schemars(range(min = 1))] u16),
}

/// An object that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressResourceBackend {
    /// API group; absent means the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A serving certificate for some hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// The hosts; none means all of the Ingress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The Secret with certificate and key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// Which controller handles a class of Ingresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IngressClass {
    /// The class.
    pub spec: IngressClassSpec,
}

/// The class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IngressClassSpec {
    /// Name of the controller.
    pub controller: String,
    /// Further settings in another object; not used here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}
