//! The target of a request: origin-form and absolute-form (RFC 9112 section 3.2), split but not
//! yet judged. [`crate::host`] and [`crate::path`] judge the parts.

use crate::path::PathProblem;

/// A request target, in parts. On HTTP/2 the proxy fills it from the pseudo-headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'r> {
    /// `https` in `https://host/path`; absent in origin-form.
    pub scheme: Option<&'r str>,
    /// Host and port of an absolute target, or `:authority`.
    pub authority: Option<&'r str>,
    /// The path as sent; never empty.
    pub path: &'r str,
    /// What follows the first `?`.
    pub query: Option<&'r str>,
}

impl<'r> Target<'r> {
    /// Splits a target. `*` and the authority-form of CONNECT are no targets here.
    ///
    /// # Errors
    /// When it is neither a path nor `scheme://authority` with a path.
    pub fn parse(target: &'r str) -> Result<Self, PathProblem> {
        if target.starts_with('/') {
            let (path, query) = split_query(target);
            return Ok(Self {
                scheme: None,
                authority: None,
                path,
                query,
            });
        }
        let (scheme, rest) = target.split_once("://").ok_or(PathProblem::NotAbsolute)?;
        let is_scheme =
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_scheme {
            return Err(PathProblem::NotAbsolute);
        }
        // A backslash ends an authority for browsers and not for RFC 3986: `crate::host` refuses it.
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = split_query(rest);
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self {
            scheme: Some(scheme),
            authority: Some(authority),
            path,
            query,
        })
    }

    /// Splits an origin-form target, which is all that HTTP/2's `:path` may be.
    ///
    /// # Errors
    /// When it does not begin with a slash.
    pub fn parse_path(target: &'r str) -> Result<Self, PathProblem> {
        if !target.starts_with('/') {
            return Err(PathProblem::NotAbsolute);
        }
        let (path, query) = split_query(target);
        Ok(Self {
            scheme: None,
            authority: None,
            path,
            query,
        })
    }
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    text.split_once('?')
        .map_or((text, None), |(path, query)| (path, Some(query)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_split_where_the_rfc_says() {
        let origin = |path, query| {
            Ok(Target {
                scheme: None,
                authority: None,
                path,
                query,
            })
        };
        assert_eq!(Target::parse("/a?b?c"), origin("/a", Some("b?c")));
        assert_eq!(Target::parse("//evil/a"), origin("//evil/a", None));
        let absolute = |authority, path, query| {
            Ok(Target {
                scheme: Some("https"),
                authority: Some(authority),
                path,
                query,
            })
        };
        assert_eq!(
            Target::parse("https://a:1/b?c"),
            absolute("a:1", "/b", Some("c"))
        );
        assert_eq!(Target::parse("https://a"), absolute("a", "/", None));
        assert_eq!(Target::parse("https://a?c"), absolute("a", "/", Some("c")));
        assert_eq!(Target::parse("https://u@a/"), absolute("u@a", "/", None));
        for other in [
            "",
            "*",
            "a",
            "a:443",
            "://a",
            "ht tp://a/",
            "?a",
            "https:/a",
        ] {
            assert_eq!(
                Target::parse(other),
                Err(PathProblem::NotAbsolute),
                "{other}"
            );
        }
    }
}
