//! `modules.oauth`: login with one of eight providers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::GoDuration, module_set::SecretKeyRef};

/// Login with an OAuth provider: exactly one of them. Upstream takes the first and ignores the
/// rest in silence; here two do not decode, and neither does none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OAuth {
    /// Google accounts.
    Google(OAuthProvider),
    /// GitHub accounts.
    Github(GithubOAuth),
    /// GitLab accounts.
    Gitlab(OAuthProvider),
    /// Amazon accounts.
    Amazon(OAuthProvider),
    /// Facebook accounts.
    Facebook(OAuthProvider),
    /// Microsoft accounts.
    Microsoft(OAuthProvider),
    /// Twitch accounts.
    Twitch(OAuthProvider),
    /// LinkedIn accounts.
    Linkedin(OAuthProvider),
}

impl OAuth {
    /// The provider's name as manifests write it.
    #[must_use]
    pub const fn provider(&self) -> &'static str {
        match self {
            Self::Google(_) => "google",
            Self::Github(_) => "github",
            Self::Gitlab(_) => "gitlab",
            Self::Amazon(_) => "amazon",
            Self::Facebook(_) => "facebook",
            Self::Microsoft(_) => "microsoft",
            Self::Twitch(_) => "twitch",
            Self::Linkedin(_) => "linkedin",
        }
    }

    /// What every provider has.
    #[must_use]
    pub const fn settings(&self) -> &OAuthProvider {
        match self {
            Self::Github(github) => &github.provider,
            Self::Google(provider)
            | Self::Gitlab(provider)
            | Self::Amazon(provider)
            | Self::Facebook(provider)
            | Self::Microsoft(provider)
            | Self::Twitch(provider)
            | Self::Linkedin(provider) => provider,
        }
    }
}

/// What every OAuth provider takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuthProvider {
    /// Let OPTIONS requests (CORS preflights) through without a login.
    pub options_passthrough: bool,
    /// Begin of the login cookies' names; empty means the edge's default.
    pub cookie_prefix: String,
    /// Log out after this long without a request; zero means never.
    pub inactivity_timeout: GoDuration,
    /// Log out after this long in any case; zero means the edge's ceiling.
    pub maximum_duration: GoDuration,
    /// How often the provider is asked again whether the user is still allowed; zero means only at login.
    pub auth_check_interval: GoDuration,
    /// Client id of the OAuth application; together with clientSecret or not at all.
    #[schemars(length(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Client secret of the OAuth application; together with clientId or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<SecretKeyRef>,
    /// Further scopes to ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Addresses that are let in.
    #[schemars(length(min = 1), extend("x-item-rule" = "email-address"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub email_addresses: Vec<String>,
    /// Domains whose addresses are let in.
    #[schemars(length(min = 1), extend("x-item-rule" = "email-domain"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub email_domains: Vec<String>,
}

/// What GitHub takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GithubOAuth {
    /// What every provider takes.
    #[serde(flatten)]
    pub provider: OAuthProvider,
    /// Teams that are let in, in the form organization/team-slug.
    #[schemars(length(min = 1), extend("x-item-rule" = "github-team"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
    /// Organizations that are let in.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
}
