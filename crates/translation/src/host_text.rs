//! Hosts that are not written as hosts: which one is meant all the same, so that its place can
//! stand closed (R3) instead of being left to a wildcard.

use model::host::HostPattern;

/// The host that a text most likely means: without scheme, user, port, path and outer blanks, and
/// with full-width characters as the plain ones (UTS 46 maps them so). `None` if there is no
/// telling: then any host may be meant.
pub(crate) fn meant(text: &str) -> Option<HostPattern> {
    let plain: String = text.chars().map(plain).collect();
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let rest = plain.trim_matches(is_blank);
    let rest = rest.split_once("://").map_or(rest, |(_, rest)| rest);
    let rest = rest.trim_start_matches('/');
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let rest = rest.get(..end)?;
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let name = rest.split_once(':').map_or(rest, |(name, _)| name);
    HostPattern::parse(name.trim_matches(is_blank).trim_end_matches('.')).ok()
}

/// The plain form of a dot or of a full-width character.
fn plain(character: char) -> char {
    match character {
        '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => '.',
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_found_behind_what_does_not_belong_there() {
        for text in [
            "h.example.com:443",
            "h.example.com ",
            "\th.example.com",
            "h.example.com/",
            "h.example.com..",
            "https://h.example.com",
            "https://user:word@H.example.com:8443/path?x=1",
            "//h.example.com",
            "h\u{3002}example\u{ff0e}com",
            "\u{ff48}.example.com",
        ] {
            let found = meant(text).map(|host| host.to_string());
            assert_eq!(found.as_deref(), Some("h.example.com"), "{text:?}");
        }
        for text in [
            "",
            " ",
            "h.example,com",
            "h.ex\u{e4}mple.com",
            "10.0.0.1",
            "a b.example.com",
        ] {
            assert_eq!(meant(text), None, "{text:?}");
        }
    }
}
