//! What the three login modules share.

use model::module::LoginSession;
use resources::{duration::GoDuration, problem::FieldPath};

use crate::{codes::Code, preflight::Judge};

/// Longest time without a request: one year, as the edge API has it.
const INACTIVITY_SECS_MAX: u32 = 365 * 24 * 60 * 60;

/// The settings of a login, as any of the three modules writes them.
pub(crate) struct Settings<'a> {
    pub(crate) options_passthrough: bool,
    pub(crate) cookie_prefix: &'a str,
    pub(crate) inactivity_timeout: GoDuration,
    pub(crate) maximum_duration: GoDuration,
}

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    at: &FieldPath,
    settings: &Settings<'_>,
) -> LoginSession {
    let Settings {
        options_passthrough,
        cookie_prefix,
        inactivity_timeout,
        maximum_duration,
    } = *settings;
    if !cookie_prefix
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'.')
    {
        let message = format!("{cookie_prefix:?} cannot begin the name of a cookie");
        judge.report(
            Code::ModuleInvalid,
            &at.member("cookiePrefix"),
            message,
            "use letters, digits and dots",
        );
    }
    judge.bounded(&at.member("cookiePrefix"), cookie_prefix);
    if inactivity_timeout.whole_secs() > INACTIVITY_SECS_MAX {
        let message = "a login that lasts more than a year without a request";
        judge.report(
            Code::ModuleInvalid,
            &at.member("inactivityTimeout"),
            message,
            "write at most 8760h",
        );
    }
    LoginSession {
        options_passthrough,
        cookie_prefix: cookie_prefix.to_owned(),
        inactivity_timeout: inactivity_timeout.whole_secs(),
        maximum_duration: maximum_duration.whole_secs(),
    }
}
