//! Sorts every way in which a call can fail by its cure (R7).

use controller::ports::{EdgeError, Refused, Unavailable};
use edge_api::{error::ErrorBody, extension::detail};
use edge_state::apply::{At, RefusalCode, RefusedCommand};
use edge_store::ApplyError;
use http::StatusCode;
use model::{
    host::HostPattern,
    place::{Match, MatchType},
    time::Span,
};

/// An answer that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) body: Option<ErrorBody>,
    pub(crate) retry_after: Option<Span>,
    /// Whether the call would have changed something.
    pub(crate) write: bool,
}

impl Answered {
    /// The failure that it is.
    pub(crate) fn classify(self) -> EdgeError {
        let Self {
            status,
            body,
            retry_after,
            write,
        } = self;
        let details = body.as_ref().map(|body| &body.details);
        let detail = |name: &str| details.and_then(|details| details.get(name)).cloned();
        let code = body
            .as_ref()
            .and_then(|body| body.error_code.clone())
            .unwrap_or_default();
        let message = body
            .as_ref()
            .map_or_else(|| format!("it answered {status}"), |b| b.msg.clone());
        if refuses_credentials(status, &code) {
            return EdgeError::Credentials(message);
        }
        match status.as_u16() {
            409 if code == RefusalCode::Superseded.code() => EdgeError::Superseded(message),
            // A path that this edge does not have will not be there next time either.
            404 if detail("path").is_none() => EdgeError::Changed(message),
            409 => EdgeError::Changed(message),
            408 | 425 | 429 => unavailable(message, false, retry_after),
            500..=599 => {
                let may_have_applied = match detail(detail::MAY_HAVE_APPLIED).as_deref() {
                    Some("false") => false,
                    Some(_) | None => write,
                };
                unavailable(message, may_have_applied, retry_after)
            }
            status => {
                let route = route(
                    detail(detail::HOST),
                    detail(detail::MATCH_TYPE),
                    detail(detail::MATCH),
                );
                EdgeError::Refused(Refused {
                    status,
                    code,
                    message,
                    route,
                })
            }
        }
    }
}

/// 401, and 403 with the codes 200 to 208 and 220; any other 403 is a refusal like the rest.
fn refuses_credentials(status: StatusCode, code: &str) -> bool {
    let number = code
        .strip_prefix("ERR_NGROK_")
        .and_then(|number| number.parse::<u32>().ok());
    status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::FORBIDDEN
            && number.is_some_and(|number| (200..=208).contains(&number) || number == 220))
}

/// The way there, or the edge, is at fault.
pub(crate) fn unavailable(
    message: impl Into<String>,
    may_have_applied: bool,
    retry_after: Option<Span>,
) -> EdgeError {
    EdgeError::Unavailable(Unavailable {
        message: message.into(),
        may_have_applied,
        retry_after,
    })
}

fn route(
    host: Option<String>,
    match_type: Option<String>,
    path: Option<String>,
) -> Option<(HostPattern, Match)> {
    let match_type = match_type?;
    let match_type = [
        MatchType::Exact,
        MatchType::ElementPrefix,
        MatchType::StringPrefix,
    ]
    .into_iter()
    .find(|known| known.wire() == match_type)?;
    Some((
        HostPattern::parse(&host?).ok()?,
        Match {
            match_type,
            path: path?,
        },
    ))
}

/// A failure of a store in the same process, sorted as its answer over HTTP would be.
pub(crate) fn direct(error: ApplyError) -> EdgeError {
    let refused = match error {
        ApplyError::Unavailable {
            message,
            may_have_applied,
        } => {
            return unavailable(message, may_have_applied, None);
        }
        ApplyError::Refused(refused) => refused,
    };
    let RefusedCommand { code, message, at } = refused;
    match (code, code.status()) {
        (RefusalCode::Superseded, _) => EdgeError::Superseded(message),
        (_, 404 | 409) => EdgeError::Changed(message),
        (_, status) => {
            let route = at.and_then(|at| {
                let At {
                    edge: _,
                    host,
                    place,
                } = *at;
                Some((host?, place?))
            });
            EdgeError::Refused(Refused {
                status,
                code: code.code().to_owned(),
                message,
                route,
            })
        }
    }
}

/// A whole answer came and cannot be read: the edge is of another version, or is none.
pub(crate) fn unreadable(what: &str) -> EdgeError {
    EdgeError::Refused(Refused {
        status: 200,
        code: "answer_unreadable".to_owned(),
        message: format!("{what} cannot be read: is this an edge of this version?"),
        route: None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn classified(status: u16, code: &str, details: &[(&str, &str)], write: bool) -> EdgeError {
        let details: BTreeMap<_, _> = details
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let error_code = (!code.is_empty()).then(|| code.to_owned());
        let body = ErrorBody {
            error_code,
            status_code: status,
            msg: "m".into(),
            details,
        };
        let status = StatusCode::from_u16(status).expect("a status");
        Answered {
            status,
            body: Some(body),
            retry_after: Some(Span(7)),
            write,
        }
        .classify()
    }

    #[test]
    fn every_status_has_its_cure() {
        for status in 300..600 {
            let name = match classified(status, "ERR_NGROK_9", &[], true) {
                EdgeError::Refused(_) => "refused",
                EdgeError::Unavailable(_) => "unavailable",
                EdgeError::Changed(_) => "changed",
                EdgeError::Superseded(_) => "superseded",
                EdgeError::Credentials(_) => "credentials",
            };
            let wanted = match status {
                401 => "credentials",
                404 | 409 => "changed",
                408 | 425 | 429 | 500..=599 => "unavailable",
                _ => "refused",
            };
            assert_eq!(name, wanted, "{status}");
        }
    }

    #[test]
    fn codes_decide_where_the_status_does_not() {
        for number in [200, 203, 208, 220] {
            let code = format!("ERR_NGROK_{number}");
            assert!(matches!(
                classified(403, &code, &[], true),
                EdgeError::Credentials(_)
            ));
            assert!(matches!(
                classified(400, &code, &[], true),
                EdgeError::Refused(_)
            ));
        }
        for code in ["", "ERR_NGROK_209", "ERR_NGROK_199", "owned_by_controller"] {
            assert!(
                matches!(classified(403, code, &[], true), EdgeError::Refused(_)),
                "{code}"
            );
        }
        assert!(matches!(
            classified(409, "superseded", &[], true),
            EdgeError::Superseded(_)
        ));
        assert!(matches!(
            classified(404, "", &[("path", "/x")], true),
            EdgeError::Refused(_)
        ));
    }

    #[test]
    fn what_may_have_happened_is_told() {
        let may = |status, details: &[(&str, &str)], write| match classified(
            status, "", details, write,
        ) {
            EdgeError::Unavailable(Unavailable {
                message: _,
                may_have_applied,
                retry_after,
            }) => {
                assert_eq!(retry_after, Some(Span(7)));
                may_have_applied
            }
            other => panic!("{other}"),
        };
        assert!(may(503, &[], true));
        assert!(!may(503, &[], false));
        assert!(!may(503, &[(detail::MAY_HAVE_APPLIED, "false")], true));
        assert!(!may(429, &[], true));
    }

    #[test]
    fn a_refusal_names_its_route() {
        let details = [
            (detail::HOST, "a.example"),
            (detail::MATCH_TYPE, "exact_path"),
            (detail::MATCH, "/x"),
        ];
        let EdgeError::Refused(refused) = classified(400, "c", &details, true) else {
            panic!("not refused")
        };
        let host = HostPattern::parse("a.example").expect("a host");
        assert_eq!(
            refused.route,
            Some((host, Match::new(MatchType::Exact, "/x")))
        );
    }
}
