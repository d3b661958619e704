//! The other built-in kinds: only the fields that something here reads. What else is legal in
//! them is known from Kubernetes' own schemas, so that a misspelt field is still refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// The Service.
    pub spec: ServiceSpec,
}

/// What kind of Service.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ServiceType {
    /// An address inside the cluster, or none (headless).
    #[default]
    ClusterIP,
    /// Also a port on each node.
    NodePort,
    /// Also an address outside.
    LoadBalancer,
    /// Only another name.
    ExternalName,
}

/// The Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// What kind of Service.
    #[serde(rename = "type")]
    pub service_type: ServiceType,
    /// Its address; `None` as a text makes it headless.
    #[serde(rename = "clusterIP", skip_serializing_if = "Option::is_none")]
    pub cluster_ip: Option<String>,
    /// The other name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_name: Option<String>,
    /// Who makes the address outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// Its ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServicePort>,
}

/// The protocol below.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Protocol {
    /// TCP.
    #[default]
    TCP,
    /// UDP.
    UDP,
    /// SCTP.
    SCTP,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its number.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// The protocol below.
    #[serde(default)]
    pub protocol: Protocol,
    /// The protocol above, as its author names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// What the addresses of a slice are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum AddressType {
    /// IPv4 addresses.
    IPv4,
    /// IPv6 addresses.
    IPv6,
    /// Names, which are not dialled.
    #[serde(rename = "FQDN")]
    Fqdn,
}

/// Some endpoints of a Service; which one says the label `kubernetes.io/service-name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSlice {
    /// What the addresses are.
    pub address_type: AddressType,
    /// The endpoints.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// The ports that every endpoint has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<EndpointPort>,
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// Its addresses.
    pub addresses: Vec<String>,
    /// What state it is in.
    #[serde(default)]
    pub conditions: EndpointConditions,
}

/// What state an endpoint is in; each may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndpointConditions {
    /// Takes connections; unknown counts as yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Still serves, terminating or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Is going away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// A port of the endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPort {
    /// The Service port's name; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The number; absent means every port, which cannot be dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// The protocol below.
    #[serde(default)]
    pub protocol: Protocol,
}

/// A ConfigMap: certificate authorities are read from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigMap {
    /// The texts by key.
    pub data: BTreeMap<String, String>,
}

/// A Namespace: only whether it is there and going away, which [`crate::snapshot::Object`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {}
