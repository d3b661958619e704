//! NgrokTrafficPolicy, and JSON objects that are kept as they are.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Any JSON object, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawObject(pub Map<String, Value>);

impl JsonSchema for RawObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RawObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

/// A traffic policy document that Ingresses name in their annotation `k8s.ngrok.com/traffic-policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NgrokTrafficPolicy {
    /// The policy.
    pub spec: NgrokTrafficPolicySpec,
}

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NgrokTrafficPolicySpec {
    /// The document, in either of the edge's forms.
    #[schemars(extend("minProperties" = 1))]
    pub policy: RawObject,
}
