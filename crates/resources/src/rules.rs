//! Checks on single values that a schema cannot say. Each is pure and stands alone, so that
//! translation asks the same question in the same words.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;

use crate::{
    duration::{DurationError, GoDuration},
    fraction::{Fraction, FractionError},
    problem::{FieldPath, Problem, ProblemCode},
    secret,
};

/// A check that a schema names: on a text, or on the object or list that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A duration in Go's notation.
    Duration,
    /// A quantity between 0 and 1.
    Fraction,
    /// A network.
    Cidr,
    /// The networks of one policy, together.
    IpRules,
    /// An e-mail address.
    EmailAddress,
    /// The domain of an e-mail address.
    EmailDomain,
    /// `organization/team-slug`.
    GithubTeam,
    /// The name of a header.
    HeaderName,
    /// Names and values of headers.
    Headers,
    /// `host:port`.
    HostPort,
    /// Standard base64.
    Base64,
    /// TLS that ends elsewhere has no lowest version here.
    TlsTermination,
    /// A signature needs a key.
    Webhook,
}

impl Rule {
    /// The rule of a name in a schema (`format`, `x-rule`, `x-item-rule`).
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "duration" => Self::Duration,
            "fraction" => Self::Fraction,
            "cidr" => Self::Cidr,
            "ip-rules" => Self::IpRules,
            "email-address" => Self::EmailAddress,
            "email-domain" => Self::EmailDomain,
            "github-team" => Self::GithubTeam,
            "header-name" => Self::HeaderName,
            "headers" => Self::Headers,
            "hostport" => Self::HostPort,
            "byte" => Self::Base64,
            "tls-termination" => Self::TlsTermination,
            "webhook" => Self::Webhook,
            _ => return None,
        })
    }

    /// What is wrong with a value whose form is right.
    #[must_use]
    pub(crate) fn check(self, value: &Value, path: &FieldPath) -> Vec<Problem> {
        let text = value.as_str().unwrap_or_default();
        let one = |code, found: Result<(), (String, String)>| -> Vec<Problem> {
            found
                .err()
                .map(|(message, remedy)| Problem::new(path.clone(), code, message, remedy))
                .into_iter()
                .collect()
        };
        match self {
            Self::Duration => one(ProblemCode::BadDuration, duration(text)),
            Self::Fraction => one(ProblemCode::BadQuantity, fraction(value)),
            Self::Cidr => one(ProblemCode::BadCidr, cidr(text).map(drop)),
            Self::IpRules => ip_rules(value, path),
            Self::EmailAddress => one(ProblemCode::BadValue, email_address(text)),
            Self::EmailDomain => one(ProblemCode::BadValue, email_domain(text)),
            Self::GithubTeam => one(ProblemCode::BadValue, github_team(text)),
            Self::HeaderName => one(ProblemCode::BadValue, header_name(text)),
            Self::Headers => headers(value, path),
            Self::HostPort => one(ProblemCode::BadValue, host_port(text).map(drop)),
            Self::Base64 => one(ProblemCode::BadValue, base64(text)),
            Self::TlsTermination => tls_termination(value, path),
            Self::Webhook => webhook(value, path),
        }
    }
}

/// What is wrong, and how to mend it.
pub type Fault = (String, String);

fn fault<T>(message: impl Into<String>, remedy: impl Into<String>) -> Result<T, Fault> {
    Err((message.into(), remedy.into()))
}

fn duration(text: &str) -> Result<(), Fault> {
    let Err(error) = text.parse::<GoDuration>() else {
        return Ok(());
    };
    let remedy = match &error {
        DurationError::Empty | DurationError::Syntax(_) => {
            "write numbers with units h, m, s or ms, such as 10m or 1h30m".to_owned()
        }
        DurationError::NoUnit(text) => format!("add the unit: {text}s, {text}m or {text}h"),
        DurationError::Unit { text, unit } => {
            match (unit.as_str(), text.strip_suffix(unit.as_str())) {
                ("d", Some(number)) if number.parse::<u32>().is_ok() => {
                    let days: u64 = number.parse::<u32>().map_or(0, u64::from);
                    format!("days do not exist here: write {}h", days * 24)
                }
                ("w", Some(number)) if number.parse::<u32>().is_ok() => {
                    let weeks: u64 = number.parse::<u32>().map_or(0, u64::from);
                    format!("weeks do not exist here: write {}h", weeks * 168)
                }
                _ => "the units are h, m, s, ms, us and ns".to_owned(),
            }
        }
        DurationError::Negative(_) => {
            "write a duration of zero or more; zero means no limit".to_owned()
        }
        DurationError::TooLong(_) => {
            "write a shorter one, or leave the field out for no limit".to_owned()
        }
        DurationError::BelowSecond(_) => {
            "the edge counts whole seconds: write 1s or more".to_owned()
        }
    };
    fault(error.to_string(), remedy)
}

fn fraction(value: &Value) -> Result<(), Fault> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Err(error) = text.parse::<Fraction>() else {
        return Ok(());
    };
    let remedy = match &error {
        FractionError::Syntax(_) => {
            "write a number between 0 and 1, such as \"0.25\" or \"250m\"".to_owned()
        }
        FractionError::Range(_) => {
            "despite its name the field is a fraction, not percent: write 0.25 for a quarter"
                .to_owned()
        }
        FractionError::TooFine(_) => "write at most six decimal places".to_owned(),
    };
    fault(error.to_string(), remedy)
}

/// Reads a network in CIDR notation: with mask, without host bits. IPv4 addresses written as IPv6
/// (`::ffff:10.0.0.0/104`) are the IPv4 network they stand for, as addresses are (R16).
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn cidr(text: &str) -> Result<IpNet, Fault> {
    let no_network = || -> Result<IpNet, Fault> {
        fault(
            format!("{text:?} is not a network in CIDR notation"),
            "write a network such as 203.0.113.0/24 or 2001:db8::/32",
        )
    };
    let (address, mask) = text
        .split_once('/')
        .map_or((text, None), |(address, mask)| (address, Some(mask)));
    // Not as a network at once: that reads 010.0.0.0/8, which some take for octal.
    let Ok(address) = address.parse::<IpAddr>() else {
        return no_network();
    };
    let Some(mask) = mask else {
        return fault(
            format!("{text:?} is an address without a mask"),
            format!("write {}", IpNet::from(address)),
        );
    };
    let digits = !mask.is_empty()
        && mask.bytes().all(|b| b.is_ascii_digit())
        && (mask == "0" || !mask.starts_with('0'));
    let parsed = mask.parse::<u8>().ok().filter(|_| digits);
    let Some(network) = parsed.and_then(|mask| IpNet::new(address, mask).ok()) else {
        return fault(
            format!("{text:?} has no valid mask"),
            "IPv4 masks go from /0 to /32, IPv6 masks from /0 to /128",
        );
    };
    if network.trunc() != network {
        let single = IpNet::from(network.addr());
        return fault(
            format!("{text:?} has bits set behind its mask"),
            format!(
                "write {} for the network or {single} for the one address",
                network.trunc()
            ),
        );
    }
    let IpNet::V6(v6) = network else {
        return Ok(network);
    };
    match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
        (Some(address), Some(mask)) => Ok(Ipv4Net::new(address, mask).map_or(network, IpNet::V4)),
        _ => Ok(network),
    }
}

/// The networks of one policy: each only once, and not allowed and denied at a time.
fn ip_rules(value: &Value, path: &FieldPath) -> Vec<Problem> {
    let mut seen: BTreeMap<IpNet, (usize, &str)> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, rule) in value.as_array().into_iter().flatten().enumerate() {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        let (written, action) = (text("cidr"), text("action"));
        let Ok(network) = cidr(written) else { continue };
        let Some((first, before)) = seen.get(&network) else {
            seen.insert(network, (index, action));
            continue;
        };
        let message = if *before == action {
            format!("{written} stands in this policy already, at rules[{first}]")
        } else {
            format!("{written} is both allowed and denied in this policy, see rules[{first}]")
        };
        problems.push(Problem::new(
            path.item(index).member("cidr"),
            ProblemCode::Duplicate,
            message,
            "keep one of the two rules",
        ));
    }
    problems
}

/// Whether a text can be a domain: labels of letters, digits and hyphens, two or more.
fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    text.len() <= 253 && text.contains('.') && text.split('.').all(label)
}

/// The form of an e-mail address, as far as a login compares it: something, `@`, a domain.
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn email_address(text: &str) -> Result<(), Fault> {
    let fine = text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && local.len() <= 64
            && local.chars().all(|c| {
                !c.is_whitespace() && !c.is_control() && !matches!(c, '@' | '*' | '<' | '>' | ',')
            })
            && is_domain(domain)
    });
    if fine {
        return Ok(());
    }
    let remedy = match text.strip_prefix("*@").or_else(|| text.strip_prefix('@')) {
        Some(domain) if is_domain(domain) => {
            format!("to let in a whole domain write {domain} under emailDomains")
        }
        _ => "write one address such as ann@example.com".to_owned(),
    };
    fault(format!("{text:?} is not an e-mail address"), remedy)
}

/// The domain of e-mail addresses.
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn email_domain(text: &str) -> Result<(), Fault> {
    if is_domain(text) {
        return Ok(());
    }
    let remedy = match text.trim_start_matches(['*', '.', '@']) {
        bare if bare != text && is_domain(bare) => {
            format!("write {bare}: the domain itself is compared, without wildcards and without @")
        }
        _ => match text.rsplit_once('@') {
            Some((_, domain)) if is_domain(domain) => {
                format!(
                    "a single address belongs under emailAddresses; the domain alone is {domain}"
                )
            }
            _ => "write a domain such as example.com".to_owned(),
        },
    };
    fault(
        format!("{text:?} is not the domain of an e-mail address"),
        remedy,
    )
}

fn github_team(text: &str) -> Result<(), Fault> {
    let slug = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    match text.split_once('/') {
        Some((organization, team)) if slug(organization) && slug(team) => Ok(()),
        _ => fault(
            format!("{text:?} is not a team"),
            "write organization/team-slug",
        ),
    }
}

/// The name of a header (RFC 9110, section 5.1: a token).
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn header_name(text: &str) -> Result<(), Fault> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !text.is_empty() && text.bytes().all(is_token) {
        return Ok(());
    }
    fault(
        format!("{text:?} is not the name of a header"),
        "write letters, digits and hyphens only",
    )
}

/// The value of a header (RFC 9110, section 5.5): no line breaks, no NUL, no blanks around it.
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn header_value(text: &str) -> Result<(), Fault> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return fault(
            "the value holds a line break or another control character",
            "write the value on one line",
        );
    }
    if text.trim_matches([' ', '\t']) != text {
        return fault(
            "the value begins or ends with a blank",
            "remove the blanks around it",
        );
    }
    Ok(())
}

fn headers(value: &Value, path: &FieldPath) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        let mut report = |code, (message, remedy): Fault| {
            problems.push(Problem::new(path.member(name), code, message, remedy));
        };
        if let Err(fault) = header_name(name) {
            report(ProblemCode::BadValue, fault);
        } else if !seen.insert(name.to_ascii_lowercase()) {
            let message = format!("{name} is added twice: names of headers do not differ by case");
            report(
                ProblemCode::Duplicate,
                (message, "keep one of them".to_owned()),
            );
        }
        if let Err(fault) = header_value(value.as_str().unwrap_or_default()) {
            report(ProblemCode::BadValue, fault);
        }
    }
    problems
}

/// Splits `host:port`; the host is not looked at.
///
/// # Errors
/// What is wrong, and how to mend it.
pub fn host_port(text: &str) -> Result<(&str, u16), Fault> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return fault(format!("{text:?} has no port"), format!("write {text}:443"));
    };
    match port.parse::<u16>() {
        Ok(port) if port > 0 && !host.is_empty() => Ok((host, port)),
        _ => fault(
            format!("{text:?} is not of the form host:port"),
            "write a name and a port, such as www.example.com:443",
        ),
    }
}

fn base64(text: &str) -> Result<(), Fault> {
    match secret::from_base64(text) {
        Some(_) => Ok(()),
        None => fault(
            "the value is not base64",
            "encode it, or write it in clear under stringData",
        ),
    }
}

fn tls_termination(value: &Value, path: &FieldPath) -> Vec<Problem> {
    let upstream = value.get("terminateAt").and_then(Value::as_str) == Some("upstream");
    if !upstream || value.get("minVersion").is_none() {
        return Vec::new();
    }
    vec![Problem::new(
        path.member("minVersion"),
        ProblemCode::Contradiction,
        "a lowest TLS version cannot be demanded where TLS ends upstream",
        "remove minVersion, or end TLS at the edge",
    )]
}

fn webhook(value: &Value, path: &FieldPath) -> Vec<Problem> {
    let provider = value
        .get("provider")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if provider.eq_ignore_ascii_case("sns") || value.get("secret").is_some() {
        return Vec::new();
    }
    vec![Problem::new(
        path.member("secret"),
        ProblemCode::MissingField,
        "signatures cannot be verified without a secret",
        "name a Secret and its key: secret: {name: …, key: …}",
    )]
}
