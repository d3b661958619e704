//! `oauth`: one provider, an application of the user's own or the operator's, and who gets in.

use model::module::{Oauth, OauthApplication, OauthProvider};
use resources::{
    oauth::{OAuth, OAuthProvider},
    problem::FieldPath,
};

use crate::{
    codes::Code,
    modules::login,
    preflight::{Judge, Written},
};

/// Shortest time after which a provider is asked again.
const AUTH_CHECK_SECS_MIN: u32 = 180;

/// Domains under which anybody gets an address: to let in all of one is to let in everybody.
const PUBLIC_MAIL: [&str; 8] = [
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "hotmail.com",
    "live.com",
    "yahoo.com",
    "icloud.com",
    "proton.me",
];

pub(crate) fn judge(judge: &mut Judge<'_, '_>, written: &Written<'_, &OAuth>) -> Option<Oauth> {
    let provider = provider(written.content);
    let at = written.field.member(written.content.provider());
    let OAuthProvider {
        options_passthrough,
        cookie_prefix,
        inactivity_timeout,
        maximum_duration,
        auth_check_interval,
        client_id,
        client_secret,
        scopes,
        email_addresses,
        email_domains,
    } = written.content.settings();
    let (teams, organizations): (&[String], &[String]) = match written.content {
        OAuth::Github(github) => (&github.teams, &github.organizations),
        OAuth::Google(_)
        | OAuth::Gitlab(_)
        | OAuth::Amazon(_)
        | OAuth::Facebook(_)
        | OAuth::Microsoft(_)
        | OAuth::Twitch(_)
        | OAuth::Linkedin(_) => (&[], &[]),
    };
    let settings = login::Settings {
        options_passthrough: *options_passthrough,
        cookie_prefix,
        inactivity_timeout: *inactivity_timeout,
        maximum_duration: *maximum_duration,
    };
    let session = login::judge(judge, &at, &settings);
    let interval = auth_check_interval.whole_secs();
    if interval != 0 && interval < AUTH_CHECK_SECS_MIN {
        let message =
            format!("asking the provider again every {interval} s is more often than it allows");
        judge.report(
            Code::ModuleInvalid,
            &at.member("authCheckInterval"),
            message,
            "write at least 3m",
        );
    }
    for (name, list) in [
        ("scopes", scopes.as_slice()),
        ("emailAddresses", email_addresses),
        ("emailDomains", email_domains),
        ("teams", teams),
        ("organizations", organizations),
    ] {
        judge.bounded_list(&at.member(name), list);
    }
    if let Some(id) = client_id {
        judge.bounded(&at.member("clientId"), id);
    }
    let groups = !(teams.is_empty() && organizations.is_empty());
    let restricted = groups || !(email_addresses.is_empty() && email_domains.is_empty());
    if client_id.is_some() && client_secret.is_some() {
        needed_scopes(judge, written, &at, scopes, groups);
        if !restricted {
            everyone(judge, written.content.provider(), &at);
        }
    }
    let application = application(judge, written, &at);
    let lower = |list: &[String]| list.iter().map(|text| text.to_lowercase()).collect();
    Some(Oauth {
        enabled: true,
        session,
        auth_check_interval: interval,
        provider,
        application,
        scopes: scopes.iter().cloned().collect(),
        email_addresses: lower(email_addresses),
        email_domains: lower(email_domains),
        teams: teams.iter().cloned().collect(),
        organizations: organizations.iter().cloned().collect(),
    })
}

/// Without a list, whoever has an account passes (R14).
fn everyone(judge: &mut Judge<'_, '_>, provider: &str, at: &FieldPath) {
    let message = format!("everybody with an account at {provider} gets in");
    let remedy = "add emailDomains or emailAddresses if that is not meant";
    judge.report(Code::EveryoneAdmitted, at, message, remedy);
}

/// The application that users log in to: the author's own, or the operator's.
fn application(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &OAuth>,
    at: &FieldPath,
) -> Option<OauthApplication> {
    let settings = written.content.settings();
    let secret_at = at.member("clientSecret");
    let secret = settings
        .client_secret
        .as_ref()
        .map(|named| judge.secret(&secret_at, named));
    match (&settings.client_id, secret) {
        (Some(id), Some(secret)) => secret.map(|client_secret| OauthApplication {
            client_id: id.clone(),
            client_secret,
        }),
        (None, None) => {
            shared_application(judge, written, at);
            None
        }
        (None, Some(_)) => {
            let message = "there is a clientSecret, but no clientId beside it";
            let remedy = "write the clientId of the OAuth application that the secret belongs to";
            judge.report(
                Code::ClientIncomplete,
                &at.member("clientId"),
                message,
                remedy,
            );
            None
        }
        (Some(_), None) => {
            let message = "there is a clientId, but no clientSecret beside it";
            let remedy = "name the Secret and key that hold the secret of this OAuth application";
            judge.report(Code::ClientIncomplete, &secret_at, message, remedy);
            None
        }
    }
}

const fn provider(oauth: &OAuth) -> OauthProvider {
    match oauth {
        OAuth::Google(_) => OauthProvider::Google,
        OAuth::Github(_) => OauthProvider::Github,
        OAuth::Gitlab(_) => OauthProvider::Gitlab,
        OAuth::Amazon(_) => OauthProvider::Amazon,
        OAuth::Facebook(_) => OauthProvider::Facebook,
        OAuth::Microsoft(_) => OauthProvider::Microsoft,
        OAuth::Twitch(_) => OauthProvider::Twitch,
        OAuth::Linkedin(_) => OauthProvider::Linkedin,
    }
}

/// Own scopes must contain what the checks read from the provider.
fn needed_scopes(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &OAuth>,
    at: &FieldPath,
    scopes: &[String],
    groups: bool,
) {
    if scopes.is_empty() {
        return;
    }
    let needed: &[&[&str]] = match written.content {
        OAuth::Google(_) => &[
            &["email", "https://www.googleapis.com/auth/userinfo.email"],
            &[
                "profile",
                "https://www.googleapis.com/auth/userinfo.profile",
            ],
        ],
        OAuth::Github(_) if groups => &[
            &["read:user", "user"],
            &["read:org", "admin:org", "write:org"],
        ],
        OAuth::Github(_) => &[&["read:user", "user"]],
        OAuth::Microsoft(_) => &[&["User.Read", "https://graph.microsoft.com/User.Read"]],
        OAuth::Facebook(_) => &[&["email"]],
        OAuth::Gitlab(_) | OAuth::Amazon(_) | OAuth::Twitch(_) | OAuth::Linkedin(_) => &[],
    };
    for spellings in needed {
        if !spellings
            .iter()
            .any(|scope| scopes.iter().any(|given| given == scope))
        {
            let message = format!("the scope {} is needed to see who logs in", spellings[0]);
            judge.report(
                Code::ModuleInvalid,
                &at.member("scopes"),
                message,
                "add it, or leave scopes out",
            );
        }
    }
}

/// What the operator's own application admits.
fn shared_application(judge: &mut Judge<'_, '_>, written: &Written<'_, &OAuth>, at: &FieldPath) {
    let OAuthProvider {
        scopes,
        email_addresses,
        email_domains,
        ..
    } = written.content.settings();
    let own = "write clientId and clientSecret of an OAuth application of your own";
    if matches!(written.content, OAuth::Amazon(_) | OAuth::Facebook(_)) {
        let message = format!(
            "there is no shared application for {}",
            written.content.provider()
        );
        judge.report(Code::SharedApplication, at, message, own);
        return;
    }
    if !scopes.is_empty() {
        let message = "the shared application takes no scopes";
        judge.report(Code::SharedApplication, &at.member("scopes"), message, own);
    }
    if email_addresses.is_empty() && email_domains.is_empty() {
        let message = "with the shared application everybody would get in";
        judge.report(
            Code::SharedApplication,
            at,
            message,
            "add emailDomains or emailAddresses",
        );
    }
    for (index, domain) in email_domains.iter().enumerate() {
        if PUBLIC_MAIL.contains(&domain.to_lowercase().as_str()) {
            let message = format!("anybody can have an address under {domain}");
            judge.report(
                Code::SharedApplication,
                &at.member("emailDomains").item(index),
                message,
                "list the addresses in emailAddresses",
            );
        }
    }
}
