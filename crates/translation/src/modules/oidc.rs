//! `oidc`: an issuer reached over HTTPS, a client and its secret.

use model::module::Oidc;
use resources::module_set as written;

use crate::{
    codes::Code,
    modules::login,
    preflight::{Judge, Written},
};

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &written::Oidc>,
) -> Option<Oidc> {
    let written::Oidc {
        options_passthrough,
        cookie_prefix,
        inactivity_timeout,
        maximum_duration,
        issuer,
        client_id,
        client_secret,
        scopes,
    } = written.content;
    let at = &written.field;
    let settings = login::Settings {
        options_passthrough: *options_passthrough,
        cookie_prefix,
        inactivity_timeout: *inactivity_timeout,
        maximum_duration: *maximum_duration,
    };
    let session = login::judge(judge, at, &settings);
    if !is_issuer(issuer) {
        let message = format!("{issuer:?} is not the URL of an issuer");
        let remedy = "write an https:// URL with a host, without user, query and fragment";
        judge.report(Code::ModuleInvalid, &at.member("issuer"), message, remedy);
    }
    judge.bounded(&at.member("issuer"), issuer);
    judge.bounded(&at.member("clientId"), client_id);
    if client_id.trim().is_empty() {
        judge.report(
            Code::ModuleInvalid,
            &at.member("clientId"),
            "the clientId is blank",
            "write the client id at the provider",
        );
    }
    judge.bounded_list(&at.member("scopes"), scopes);
    let message = format!("everybody with an account at {issuer} gets in");
    judge.report(
        Code::EveryoneAdmitted,
        at,
        message,
        "let the provider admit only those who may",
    );
    let client_secret = judge.secret(&at.member("clientSecret"), client_secret)?;
    Some(Oidc {
        enabled: true,
        session,
        issuer: issuer.clone(),
        client_id: client_id.clone(),
        client_secret,
        scopes: scopes.iter().cloned().collect(),
    })
}

/// OpenID Connect Discovery 1.0, section 3: https, a host, no query and no fragment.
fn is_issuer(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    !authority.is_empty()
        && !authority.contains('@')
        && !rest.contains(['?', '#', '\\'])
        && rest.bytes().all(|b| b.is_ascii_graphic())
}
