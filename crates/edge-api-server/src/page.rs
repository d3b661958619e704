//! Pages of a collection: newest first by id, each page naming the next.

use std::fmt::Display;

use edge_api::{
    error::{ApiError, Code},
    list::{Page, PageQuery, Resource},
};
use model::id::NotAnId;

use crate::{
    answer::{Answer, Failure, Outcome, internal},
    call::Call,
};

/// Answers the page that the call asks for.
///
/// `items` come in ascending order of their ids; `view` may leave some out. There is a next page
/// only if there is an item on it: one official client takes an empty page for the end.
pub(crate) fn answer<'a, K, V, T>(
    call: &Call,
    parse: impl Fn(&str) -> Result<K, NotAnId>,
    items: impl DoubleEndedIterator<Item = (&'a K, V)>,
    view: impl Fn(&K, V) -> Option<T>,
) -> Outcome
where
    K: Ord + Display + 'a,
    T: Resource,
{
    let query = PageQuery::parse(call.query.as_deref())?;
    let before = match &query.before_id {
        None => None,
        Some(id) => Some(parse(id).map_err(|error| {
            ApiError::new(Code::BeforeIdInvalid, format!("before_id: {error}"))
        })?),
    };
    let uri = format!("{}{}", call.base, T::PATH);
    let mut rest = items
        .rev()
        .filter(|(id, _)| before.as_ref().is_none_or(|before| *id < before))
        .filter_map(|(id, value)| Some((id, view(id, value)?)));
    let mut last = None;
    let mut shown = Vec::new();
    for (id, item) in rest.by_ref().take(query.limit) {
        last = Some(id);
        shown.push(item);
    }
    let next_page_uri = match (last, rest.next()) {
        (Some(last), Some(_more)) => Some(format!("{uri}?limit={}&before_id={last}", query.limit)),
        (Some(_) | None, _) => None,
    };
    let body = Page {
        items: shown,
        uri,
        next_page_uri,
    }
    .to_json()
    .map_err(|error| internal(&error))?;
    Answer::ok(&body)
}

/// Reads an id from the path.
pub(crate) fn id<K>(text: &str, parse: impl Fn(&str) -> Result<K, NotAnId>) -> Result<K, Failure> {
    parse(text).map_err(|error| ApiError::new(Code::IdInvalid, error.to_string()).into())
}
