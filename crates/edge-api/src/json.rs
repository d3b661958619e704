//! Strict reading of request bodies.
//!
//! A body is read by asking for the members that a call knows; what was not asked for is an error
//! that lists what is accepted, so that a misspelt protection is refused instead of dropped. A
//! member that stands twice makes the whole body unreadable: which of the two counts would be
//! a guess.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{ApiError, Code};

/// The members of one JSON object, taken one by one.
#[derive(Debug)]
pub struct Members {
    /// Where the object stands in the body, for messages; empty for the body itself.
    path: String,
    object: Map<String, Value>,
    asked: Vec<&'static str>,
}

impl Members {
    /// Reads a body. No body at all counts as `{}`: one official client sends a module without
    /// members that way.
    ///
    /// # Errors
    /// When it is not one JSON object, or has a member twice.
    pub fn read(body: &[u8]) -> Result<Self, ApiError> {
        let unparsable = |why: &dyn fmt::Display| {
            ApiError::new(
                Code::BodyUnparsable,
                format!("the body is not a JSON object: {why}"),
            )
        };
        let value = if body.is_empty() {
            Value::Object(Map::new())
        } else {
            let Single(value) = serde_json::from_slice(body).map_err(|error| unparsable(&error))?;
            value
        };
        match value {
            Value::Object(object) => Ok(Self::of(String::new(), object)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(unparsable(&"it is another value")),
        }
    }

    const fn of(path: String, object: Map<String, Value>) -> Self {
        Self {
            path,
            object,
            asked: Vec::new(),
        }
    }

    /// The member's name as messages give it.
    fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The member's value; `null` counts as absent.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.asked.push(name);
        self.object.remove(name).filter(|value| !value.is_null())
    }

    /// Whether the member is there with a value, whatever it is. For what is refused unread.
    pub fn has(&mut self, name: &'static str) -> bool {
        self.take(name).is_some()
    }

    /// A string.
    ///
    /// # Errors
    /// When it is another value.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::invalid(&self.at(name), "a string")),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// When it is another value.
    pub fn flag(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(ApiError::invalid(&self.at(name), "true or false")),
        }
    }

    /// A whole number from zero.
    ///
    /// # Errors
    /// When it is another value.
    pub fn number(&mut self, name: &'static str) -> Result<Option<u64>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(ApiError::invalid(&self.at(name), "a whole number")),
            },
        }
    }

    /// A list of strings.
    ///
    /// # Errors
    /// When it is another value.
    pub fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let wrong = || ApiError::invalid(&self.at(name), "a list of strings");
        let Value::Array(items) = value else {
            return Err(wrong());
        };
        items
            .into_iter()
            .map(|item| {
                let Value::String(text) = item else {
                    return Err(wrong());
                };
                Ok(text)
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A map of strings, in the order written.
    ///
    /// # Errors
    /// When it is another value.
    pub fn pairs(&mut self, name: &'static str) -> Result<Option<Vec<(String, String)>>, ApiError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let wrong = || ApiError::invalid(&self.at(name), "an object of strings");
        let Value::Object(entries) = value else {
            return Err(wrong());
        };
        entries
            .into_iter()
            .map(|(key, value)| {
                let Value::String(text) = value else {
                    return Err(wrong());
                };
                Ok((key, text))
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// An object within this one.
    ///
    /// # Errors
    /// When it is another value.
    pub fn object(&mut self, name: &'static str) -> Result<Option<Self>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Self::of(self.at(name), object))),
            Some(_) => Err(ApiError::invalid(&self.at(name), "an object")),
        }
    }

    /// A list of objects.
    ///
    /// # Errors
    /// When it is another value.
    pub fn objects(&mut self, name: &'static str) -> Result<Option<Vec<Self>>, ApiError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let wrong = || ApiError::invalid(&self.at(name), "a list of objects");
        let Value::Array(items) = value else {
            return Err(wrong());
        };
        items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                let Value::Object(object) = item else {
                    return Err(wrong());
                };
                Ok(Self::of(format!("{}[{index}]", self.at(name)), object))
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// An id that the path names too: update bodies may repeat it, but not another one.
    ///
    /// # Errors
    /// When it is another one.
    pub fn same_id(&mut self, name: &'static str, id: &str) -> Result<(), ApiError> {
        match self.text(name)? {
            Some(text) if text != id => Err(ApiError::new(
                Code::IdsDiffer,
                format!("{} is {text:?}, but the path names {id}", self.at(name)),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends the reading: everything that was not asked for is unknown.
    ///
    /// # Errors
    /// When something is left.
    pub fn finish(self) -> Result<(), ApiError> {
        let Some(unknown) = self.object.keys().next() else {
            return Ok(());
        };
        let accepted = if self.asked.is_empty() {
            "none".to_owned()
        } else {
            self.asked.join(", ")
        };
        Err(ApiError::new(
            Code::MemberUnknown,
            format!(
                "{} is not a member of this request; accepted: {accepted}",
                self.at(unknown)
            ),
        ))
    }
}

/// A JSON value in which no object has a member twice.
struct Single(Value);

impl<'de> Deserialize<'de> for Single {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SingleVisitor).map(Self)
    }
}

struct SingleVisitor;

impl<'de> Visitor<'de> for SingleVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Single(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Single(value))) = entries.next_entry::<String, Single>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!(
                    "the member {key:?} stands twice"
                )));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: fmt::Debug>(result: Result<T, ApiError>) -> (Option<&'static str>, String) {
        let error = result.expect_err("refused");
        (error.code, error.message)
    }

    #[test]
    fn no_body_is_an_empty_object_and_anything_but_an_object_is_refused() {
        assert!(Members::read(b"").and_then(Members::finish).is_ok());
        for body in [
            &b"null"[..],
            b"[]",
            b"1",
            b"\"a\"",
            b"{",
            b"{} {}",
            b"{\"a\":1,\"a\":2}",
            b"\xff",
        ] {
            assert_eq!(
                code(Members::read(body)).0,
                Some(Code::BodyUnparsable.text()),
                "{body:?}"
            );
        }
        let deep = format!("{}{}", "{\"a\":".repeat(200), "1");
        assert_eq!(
            code(Members::read(deep.as_bytes())).0,
            Some(Code::BodyUnparsable.text())
        );
        let nested = br#"{"a":{"b":1,"b":1}}"#;
        assert!(code(Members::read(nested)).1.contains("\"b\" stands twice"));
    }

    #[test]
    fn an_unknown_member_is_named_with_what_is_accepted() {
        let mut members = Members::read(br#"{"a":"x","o":{"z":1}}"#).expect("an object");
        assert_eq!(members.text("a").expect("a string").as_deref(), Some("x"));
        let mut inner = members.object("o").expect("an object").expect("there");
        assert_eq!(inner.flag("enabled"), Ok(None));
        let (code, message) = code(inner.finish());
        assert_eq!(code, Some(Code::MemberUnknown.text()));
        assert_eq!(
            message,
            "o.z is not a member of this request; accepted: enabled"
        );
        assert!(members.finish().is_ok());
    }

    #[test]
    fn null_counts_as_absent_and_wrong_kinds_are_named() {
        let body = br#"{"n":null,"t":1,"f":"yes","u":-1,"l":[1],"p":{"a":1},"o":[],"os":[1]}"#;
        let mut members = Members::read(body).expect("an object");
        assert_eq!(members.text("n"), Ok(None));
        assert_eq!(code(members.text("t")).1, "t must be a string");
        assert_eq!(code(members.flag("f")).1, "f must be true or false");
        assert_eq!(code(members.number("u")).1, "u must be a whole number");
        assert_eq!(code(members.texts("l")).1, "l must be a list of strings");
        assert_eq!(code(members.pairs("p")).1, "p must be an object of strings");
        assert_eq!(code(members.object("o")).1, "o must be an object");
        assert_eq!(
            code(members.objects("os")).0,
            Some(Code::MemberInvalid.text())
        );
        assert!(members.finish().is_ok());
    }
}
