//! IP policies and their rules on the wire.

use std::net::IpAddr;

use ipnet::IpNet;
use model::{id::IpPolicyId, module::IpAction};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::{Reference, Resource},
    texts::Texts,
};

/// Reads the body of a POST of a policy.
///
/// # Errors
/// When it is not one.
pub fn read_create(mut members: Members) -> Result<Texts, ApiError> {
    let texts = Texts::take(&mut members)?;
    members.finish()?;
    Ok(texts)
}

/// Reads the body of a PATCH of the policy with this id.
///
/// # Errors
/// When it is not one, or changes nothing.
pub fn read_update(mut members: Members, id: &str) -> Result<Texts, ApiError> {
    members.same_id("id", id)?;
    let texts = Texts::take(&mut members)?;
    members.finish()?;
    if texts.is_empty() {
        return Err(ApiError::new(
            Code::PolicyUpdateEmpty,
            "the update has no value",
        ));
    }
    Ok(texts)
}

/// A new rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCreate {
    /// The policy it belongs to.
    pub policy: IpPolicyId,
    /// The network.
    pub cidr: IpNet,
    /// What is done with it.
    pub action: IpAction,
    /// The texts.
    pub texts: Texts,
}

impl RuleCreate {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(mut members: Members) -> Result<Self, ApiError> {
        let texts = Texts::take(&mut members)?;
        let cidr = members.text("cidr")?.unwrap_or_default();
        let policy = members.text("ip_policy_id")?.unwrap_or_default();
        let action = members.text("action")?.unwrap_or_default();
        members.finish()?;
        let policy = IpPolicyId::parse(&policy)
            .map_err(|error| ApiError::new(Code::PolicyIdInvalid, error.to_string()))?;
        let action = match action.as_str() {
            "allow" => IpAction::Allow,
            "deny" => IpAction::Deny,
            _ => {
                return Err(ApiError::new(
                    Code::RuleActionInvalid,
                    format!("action is {action:?}; accepted: allow, deny"),
                ));
            }
        };
        Ok(Self {
            policy,
            cidr: read_cidr(&cidr)?,
            action,
            texts,
        })
    }
}

/// A change of a rule. Its action cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePatch {
    /// New network.
    pub cidr: Option<IpNet>,
    /// The texts.
    pub texts: Texts,
}

impl RulePatch {
    /// Reads the body of a PATCH of the rule with this id.
    ///
    /// # Errors
    /// When it is not one, or changes nothing.
    pub fn read(mut members: Members, id: &str) -> Result<Self, ApiError> {
        members.same_id("id", id)?;
        let texts = Texts::take(&mut members)?;
        let cidr = members.text("cidr")?.filter(|text| !text.is_empty());
        members.finish()?;
        if texts.is_empty() && cidr.is_none() {
            return Err(ApiError::new(
                Code::PolicyUpdateEmpty,
                "the update has no value",
            ));
        }
        Ok(Self {
            cidr: cidr.as_deref().map(read_cidr).transpose()?,
            texts,
        })
    }
}

/// Reads an address range. The parts are read one by one, because the usual parser for ranges
/// takes `010.0.0.0/8`, which some would read as octal.
///
/// # Errors
/// When it is none, has no mask, or does not begin with its lowest address.
pub fn read_cidr(text: &str) -> Result<IpNet, ApiError> {
    let invalid = || {
        ApiError::new(
            Code::CidrInvalid,
            format!("{text:?} is not an address range"),
        )
    };
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().map_err(|_| invalid())?;
    let mask = mask.ok_or_else(|| {
        let message = format!("{text:?} has no mask; one address is /32 or /128");
        ApiError::new(Code::CidrWithoutMask, message)
    })?;
    let bits = mask
        .parse::<u8>()
        .ok()
        .filter(|bits| bits.to_string() == mask)
        .ok_or_else(invalid)?;
    let net = IpNet::new(address, bits).map_err(|_| invalid())?;
    if net != net.trunc() {
        let lowest = net.trunc();
        let message = format!("{text:?} does not begin with its lowest address; {lowest} does");
        return Err(ApiError::new(Code::CidrNotLowest, message));
    }
    Ok(net)
}

/// An IP policy as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpPolicy {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// What this edge adds.
    #[serde(default)]
    pub portcullis: IpPolicyExtras,
}

/// What this edge says of an IP policy beyond the common API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpPolicyExtras {
    /// The controller that owns it.
    pub controller: Option<String>,
    /// The newest version (R17).
    #[serde(default)]
    pub version: u64,
}

impl Resource for IpPolicy {
    const PATH: &'static str = "/ip_policies";
    const PLURAL: &'static str = "ip_policies";
}

/// A rule of an IP policy as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpPolicyRule {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Free text.
    #[serde(default)]
    pub metadata: String,
    /// The network.
    pub cidr: String,
    /// The policy it belongs to.
    pub ip_policy: Reference,
    /// `allow` or `deny`.
    pub action: IpAction,
}

impl Resource for IpPolicyRule {
    const PATH: &'static str = "/ip_policy_rules";
    const PLURAL: &'static str = "ip_policy_rules";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_strictly() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "2001:db8::/32",
            "10.1.2.3/32",
        ] {
            assert_eq!(read_cidr(text).expect(text).to_string(), text);
        }
        for (text, code) in [
            ("", Code::CidrInvalid),
            ("10.0.0.0/33", Code::CidrInvalid),
            ("10.0.0/8", Code::CidrInvalid),
            ("010.0.0.0/8", Code::CidrInvalid),
            ("10.0.0.0/08", Code::CidrInvalid),
            ("10.0.0.0/+8", Code::CidrInvalid),
            ("10.0.0.0/8 ", Code::CidrInvalid),
            ("10.0.0.1", Code::CidrWithoutMask),
            ("::1", Code::CidrWithoutMask),
            ("10.0.0.1/8", Code::CidrNotLowest),
        ] {
            assert_eq!(
                read_cidr(text).expect_err(text).code,
                Some(code.text()),
                "{text:?}"
            );
        }
    }
}
