//! `webhookVerification`: a known sender, and a key that is not empty.

use base64::{Engine, engine::general_purpose::STANDARD};
use model::module::WebhookVerification;
use resources::module_set as written;

use crate::{
    codes::Code,
    preflight::{Judge, Written},
};

/// The senders whose signature schemes the edge API names.
const PROVIDERS: &[&str] = &[
    "aftership",
    "airship",
    "alchemy",
    "autodesk",
    "bitbucket",
    "bolt",
    "box",
    "brex",
    "buildkite",
    "calendly",
    "castle",
    "chargify",
    "circleci",
    "clearbit",
    "clerk",
    "coinbase",
    "contentful",
    "docusign",
    "dropbox",
    "facebook_graph_api",
    "facebook_messenger",
    "frameio",
    "github",
    "gitlab",
    "go1",
    "graphcms",
    "heroku",
    "hostedhooks",
    "hubspot",
    "instagram",
    "intercom",
    "jira",
    "launch_darkly",
    "linear",
    "mailchimp",
    "mailgun",
    "microsoft_teams",
    "modern_treasury",
    "mongodb",
    "mux",
    "orb",
    "orbit",
    "pagerduty",
    "pinwheel",
    "plivo",
    "pusher",
    "sendgrid",
    "sentry",
    "shopify",
    "signal_sciences",
    "slack",
    "sns",
    "sonatype",
    "square",
    "stripe",
    "svix",
    "terraform",
    "tiktok",
    "trendmicro_conformity",
    "twilio",
    "twitter",
    "typeform",
    "vmware",
    "webex",
    "whatsapp",
    "worldline",
    "xero",
    "zendesk",
    "zoom",
];

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &written::WebhookVerification>,
) -> Option<WebhookVerification> {
    let written::WebhookVerification { provider, secret } = written.content;
    let name = provider.to_ascii_lowercase();
    let at = written.field.member("provider");
    if !PROVIDERS.contains(&name.as_str()) {
        let message = format!("{provider:?} is not a webhook sender that the edge knows");
        judge.report(
            Code::ModuleInvalid,
            &at,
            message,
            "see the list of providers in the reference of module sets",
        );
    }
    let field = written.field.member("secret");
    let secret = match (name.as_str(), secret) {
        ("sns", None) => None,
        ("sns", Some(_)) => {
            let message = "sns signs with a certificate of its own and takes no secret";
            judge.report(Code::ModuleInvalid, &field, message, "take the secret out");
            return None;
        }
        (_, None) => {
            let message = format!("webhooks of {provider} cannot be verified without a secret");
            judge.report(
                Code::ModuleInvalid,
                &field,
                message,
                "name a Secret and its key",
            );
            return None;
        }
        (_, Some(named)) => Some(judge.secret(&field, named)?),
    };
    if name == "sendgrid"
        && secret
            .as_ref()
            .is_some_and(|key| STANDARD.decode(key.expose()).is_err())
    {
        let message = "sendgrid needs its public verification key in base64 as the secret";
        judge.report(
            Code::SecretInvalid,
            &field,
            message,
            "copy the verification key from SendGrid's mail settings",
        );
    }
    Some(WebhookVerification {
        enabled: true,
        provider: name,
        secret,
    })
}
