//! Lists and their pages, references, and query strings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::{ApiError, Code};

/// Items of a page when the caller names no number, and the most that he may name.
pub const LIMIT_MAX: usize = 100;

/// A resource that has a collection.
pub trait Resource: Serialize + DeserializeOwned {
    /// The collection's path.
    const PATH: &'static str;
    /// The member of a list that holds the items.
    const PLURAL: &'static str;
}

/// A reference to another thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Its id.
    pub id: String,
    /// Its address.
    #[serde(default)]
    pub uri: String,
}

/// One page of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The collection's address.
    pub uri: String,
    /// The absolute address of the next page; absent on the last one.
    pub next_page_uri: Option<String>,
}

impl<T: Resource> Page<T> {
    /// The body of the answer.
    ///
    /// # Errors
    /// When an item cannot be written as JSON.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        let mut body = serde_json::Map::new();
        body.insert(T::PLURAL.to_owned(), serde_json::to_value(&self.items)?);
        body.insert("uri".to_owned(), self.uri.as_str().into());
        // Always there: the official Python client fails on a page without the member.
        body.insert(
            "next_page_uri".to_owned(),
            self.next_page_uri.as_deref().into(),
        );
        Ok(Value::Object(body))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// When it is not a page of these.
    pub fn from_json(mut body: Value) -> serde_json::Result<Self> {
        let mut take = |name: &str| body.get_mut(name).map(Value::take).unwrap_or_default();
        Ok(Self {
            items: serde_json::from_value(take(T::PLURAL))?,
            uri: serde_json::from_value(take("uri"))?,
            next_page_uri: serde_json::from_value(take("next_page_uri"))?,
        })
    }
}

/// Which page is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Items at most, 1 to 100.
    pub limit: usize,
    /// Only items that come after this one, newest first.
    pub before_id: Option<String>,
}

impl PageQuery {
    /// Reads it from a query string; whether `before_id` fits the collection is the caller's to say.
    ///
    /// # Errors
    /// When the query has anything else, or a limit that is none.
    pub fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let mut found = parameters(query, &["limit", "before_id"])?;
        let limit = match found.remove("limit") {
            None => LIMIT_MAX,
            Some(text) => {
                let number = text.parse::<i64>().map_err(|_| {
                    ApiError::new(
                        Code::LimitNotANumber,
                        format!("limit is {text:?}, not a number"),
                    )
                })?;
                usize::try_from(number)
                    .ok()
                    .filter(|n| (1..=LIMIT_MAX).contains(n))
                    .ok_or_else(|| {
                        ApiError::new(
                            Code::LimitOutOfRange,
                            format!("limit must be from 1 to {LIMIT_MAX}"),
                        )
                    })?
            }
        };
        Ok(Self {
            limit,
            before_id: found.remove("before_id").filter(|id| !id.is_empty()),
        })
    }
}

/// The parameters of a query string, each at most once and each one of `known`.
///
/// # Errors
/// When the query is malformed, or has another parameter, or one twice.
pub fn parameters(
    query: Option<&str>,
    known: &[&'static str],
) -> Result<BTreeMap<&'static str, String>, ApiError> {
    let mut found = BTreeMap::new();
    for part in query
        .unwrap_or_default()
        .split('&')
        .filter(|part| !part.is_empty())
    {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decoded(name)?;
        let Some(known_name) = known.iter().find(|known| **known == name) else {
            let accepted = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Err(ApiError::new(
                Code::ParameterUnknown,
                format!("{name:?} is not a parameter of this call; accepted: {accepted}"),
            ));
        };
        if found.insert(*known_name, decoded(value)?).is_some() {
            return Err(ApiError::new(
                Code::ParameterTwice,
                format!("{known_name} is given twice"),
            ));
        }
    }
    Ok(found)
}

/// Undoes percent-encoding (RFC 3986 section 2.1) and the `+` of forms.
fn decoded(text: &str) -> Result<String, ApiError> {
    let malformed = || ApiError::new(Code::QueryMalformed, "the query is not well-formed");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|d| char::from(d).to_digit(16));
                let (high, low) = (
                    digit().ok_or_else(malformed)?,
                    digit().ok_or_else(malformed)?,
                );
                u8::try_from(high * 16 + low).map_err(|_| malformed())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_strictly() {
        let page = PageQuery::parse(Some("limit=5&before_id=rd%5fx")).expect("fine");
        assert_eq!(
            page,
            PageQuery {
                limit: 5,
                before_id: Some("rd_x".to_owned())
            }
        );
        assert_eq!(PageQuery::parse(None).expect("fine").limit, 100);
        for (query, code) in [
            ("limit=0", Code::LimitOutOfRange),
            ("limit=-1", Code::LimitOutOfRange),
            ("limit=101", Code::LimitOutOfRange),
            ("limit=ten", Code::LimitNotANumber),
            ("limit=", Code::LimitNotANumber),
            ("filter=a", Code::ParameterUnknown),
            ("limit=1&limit=1", Code::ParameterTwice),
            ("limit=%4", Code::QueryMalformed),
            ("limit=%zz", Code::QueryMalformed),
            ("limit=%ff", Code::QueryMalformed),
        ] {
            let error = PageQuery::parse(Some(query)).expect_err(query);
            assert_eq!(error.code, Some(code.text()), "{query}");
        }
    }
}
