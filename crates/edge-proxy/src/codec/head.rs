//! What a request head must look like before the HTTP/1 parser sees it (R16).
//!
//! Smuggling lives on heads that two parsers read differently, so nothing that leaves room for two
//! readings is let through: RFC 9112 allows a recipient to refuse all of it. The functions here are
//! pure; `guard` runs them over a connection's bytes.

use http::Uri;

use crate::options::Defences;

/// Why a message is refused before it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    /// Not `METHOD SP target SP HTTP/1.x`.
    #[error("the request line is malformed")]
    RequestLine,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("the protocol version is not supported")]
    Version,
    /// A line that ends in a bare LF, or a CR or NUL that ends nothing.
    #[error("a line does not end in CRLF")]
    Newline,
    /// A line that continues the one before it.
    #[error("a header is folded over lines")]
    Fold,
    /// A header line without a proper name directly before its colon.
    #[error("a header name is malformed")]
    Name,
    /// A control character in a value.
    #[error("a header value is malformed")]
    Value,
    /// Host twice.
    #[error("there is more than one Host")]
    Host,
    /// Content-Length and Transfer-Encoding that leave the length in doubt.
    #[error("the length of the message is ambiguous")]
    Framing,
    /// A chunk that is not `SIZE CRLF data CRLF`.
    #[error("a chunk of the body is malformed")]
    Chunk,
    /// More bytes or headers than allowed.
    #[error("the request head is too large")]
    TooLarge,
    /// A target that is none, or whose end parsers see in different places (`#`).
    #[error("the request target is malformed")]
    Target,
    /// A longer target than allowed.
    #[error("the request target is too long")]
    TargetTooLong,
    /// A head that is not whole in time.
    #[error("the request head did not arrive in time")]
    Late,
}

/// How much a head may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    pub(crate) head_bytes: usize,
    pub(crate) target_bytes: usize,
    pub(crate) headers: usize,
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// What the guard must know of a valid head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadFacts {
    pub(crate) framing: Framing,
    /// An `Upgrade` header: what follows may be another protocol.
    pub(crate) upgrade: bool,
}

/// Looks for the end of the head in `bytes`; `from` is where the last look left off.
///
/// Returns the head's length, or where to go on looking.
pub(crate) fn find_end(
    bytes: &[u8],
    from: usize,
    defences: &Defences,
) -> Result<Result<usize, usize>, HeadError> {
    let mut at = from;
    while let Some(offset) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let newline = at + offset;
        let carriage = newline > 0 && bytes[newline - 1] == b'\r';
        if !carriage && defences.line_endings {
            return Err(HeadError::Newline);
        }
        let line_end = if carriage { newline - 1 } else { newline };
        if line_end == 0 || bytes[line_end - 1] == b'\n' {
            return Ok(Ok(newline + 1));
        }
        at = newline + 1;
    }
    Ok(Err(at))
}

/// Judges a whole head, the empty line at its end included.
pub(crate) fn judge(
    head: &[u8],
    limits: HeadLimits,
    defences: &Defences,
) -> Result<HeadFacts, HeadError> {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let http_1_0 = request_line(lines.next().unwrap_or_default(), limits, defences)?;
    let mut seen = Seen::default();
    let mut headers = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        headers += 1;
        if headers > limits.headers {
            return Err(HeadError::TooLarge);
        }
        let (name, value) = header_line(line, defences)?;
        seen.header(name, value, defences)?;
    }
    seen.facts(http_1_0, defences)
}

/// Checks the request line; returns whether it is HTTP/1.0.
fn request_line(line: &[u8], limits: HeadLimits, defences: &Defences) -> Result<bool, HeadError> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, parts.next())
    else {
        return Err(HeadError::RequestLine);
    };
    if target.len() > limits.target_bytes {
        return Err(HeadError::TargetTooLong);
    }
    let fine = !method.is_empty()
        && method.iter().all(|byte| is_token(*byte))
        && !target.is_empty()
        && target.iter().all(|byte| byte.is_ascii_graphic());
    if !fine && defences.line_endings {
        return Err(HeadError::RequestLine);
    }
    if !is_plain_target(target)
        && (defences.path && target.contains(&b'#') || Uri::try_from(target).is_err())
    {
        return Err(HeadError::Target);
    }
    match version {
        b"HTTP/1.1" => Ok(false),
        b"HTTP/1.0" => Ok(true),
        _ => Err(HeadError::Version),
    }
}

/// Whether the parser takes a target in any case; others are tried, so that it is we who refuse.
fn is_plain_target(target: &[u8]) -> bool {
    target.first() == Some(&b'/')
        && !target
            .iter()
            .any(|byte| matches!(byte, b'<' | b'>' | b'`' | b'"' | b'#'))
}

fn header_line<'a>(line: &'a [u8], defences: &Defences) -> Result<(&'a [u8], &'a [u8]), HeadError> {
    if defences.framing && matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::Fold);
    }
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or(HeadError::Name)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if defences.framing && (name.is_empty() || !name.iter().all(|byte| is_token(*byte))) {
        return Err(HeadError::Name);
    }
    if defences.line_endings
        && value
            .iter()
            .any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)
    {
        return Err(if value.contains(&b'\r') || value.contains(&0) {
            HeadError::Newline
        } else {
            HeadError::Value
        });
    }
    Ok((name, value.trim_ascii()))
}

#[derive(Default)]
struct Seen {
    host: bool,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

impl Seen {
    fn header(&mut self, name: &[u8], value: &[u8], defences: &Defences) -> Result<(), HeadError> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                let twice = std::mem::replace(&mut self.host, true);
                refuse_if(twice && defences.host, HeadError::Host)?;
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.upgrade = true,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = decimal(value).ok_or(HeadError::Framing)?;
                let twice = self.length.replace(length).is_some();
                refuse_if(twice && defences.framing, HeadError::Framing)?;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let twice = std::mem::replace(&mut self.chunked, true);
                let other = !value.eq_ignore_ascii_case(b"chunked");
                refuse_if((twice || other) && defences.framing, HeadError::Framing)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn facts(self, http_1_0: bool, defences: &Defences) -> Result<HeadFacts, HeadError> {
        if self.chunked && (self.length.is_some() || http_1_0) && defences.framing {
            return Err(HeadError::Framing);
        }
        let framing = match (self.chunked, self.length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) if length > 0 => Framing::Length(length),
            (false, _) => Framing::None,
        };
        Ok(HeadFacts {
            framing,
            upgrade: self.upgrade && framing == Framing::None,
        })
    }
}

const fn refuse_if(wrong: bool, error: HeadError) -> Result<(), HeadError> {
    if wrong { Err(error) } else { Ok(()) }
}

/// Digits only, few enough not to overflow: `+5`, `5, 5` and `0x5` are no lengths.
fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

/// RFC 9110 section 5.6.2.
pub(crate) const fn is_token(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
    ) || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        head_bytes: 4096,
        target_bytes: 100,
        headers: 5,
    };

    fn verdict(head: &str) -> Result<HeadFacts, HeadError> {
        let on = Defences::all();
        match find_end(head.as_bytes(), 0, &on)? {
            Ok(length) => judge(&head.as_bytes()[..length], LIMITS, &on),
            Err(_) => unreachable!("the head is not whole: {head:?}"),
        }
    }

    #[test]
    fn ordinary_heads_pass() {
        let plain = HeadFacts {
            framing: Framing::None,
            upgrade: false,
        };
        assert_eq!(
            verdict("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"),
            Ok(plain)
        );
        assert_eq!(verdict("GET / HTTP/1.0\r\n\r\n"), Ok(plain));
        let framing = |head: &str| verdict(head).map(|facts| facts.framing);
        assert_eq!(
            framing("POST /x HTTP/1.1\r\nhost:a\r\ncontent-length: 12 \r\n\r\n"),
            Ok(Framing::Length(12))
        );
        assert_eq!(
            framing("POST /x HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: Chunked\r\n\r\n"),
            Ok(Framing::Chunked)
        );
        assert!(
            verdict("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n")
                .expect("valid")
                .upgrade
        );
    }

    #[test]
    fn what_two_parsers_may_read_differently_is_refused() {
        let header = |line: &str| verdict(&format!("POST / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"));
        for (line, error) in [
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked",
                HeadError::Framing,
            ),
            ("Content-Length: 1\r\nContent-Length: 1", HeadError::Framing),
            ("Content-Length: +5", HeadError::Framing),
            ("Content-Length: 5, 5", HeadError::Framing),
            ("Content-Length:", HeadError::Framing),
            ("Transfer-Encoding: xchunked", HeadError::Framing),
            ("Transfer-Encoding: gzip, chunked", HeadError::Framing),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                HeadError::Framing,
            ),
            ("Transfer-Encoding : chunked", HeadError::Name),
            (": x", HeadError::Name),
            ("no-colon", HeadError::Name),
            ("a: b\r\n c", HeadError::Fold),
            ("a: b\nc: d", HeadError::Newline),
            ("a: b\rc: d", HeadError::Newline),
            ("a: b\0", HeadError::Newline),
            ("a: \u{1}", HeadError::Value),
            ("Host: b", HeadError::Host),
            ("a:1\r\nb:1\r\nc:1\r\nd:1\r\ne:1", HeadError::TooLarge),
        ] {
            assert_eq!(header(line), Err(error), "{line:?}");
        }
        for (line, error) in [
            ("GET  / HTTP/1.1", HeadError::RequestLine),
            ("GET / HTTP/1.1 ", HeadError::RequestLine),
            ("GET /a\tb HTTP/1.1", HeadError::RequestLine),
            ("G(T / HTTP/1.1", HeadError::RequestLine),
            ("GET / HTTP/2.0", HeadError::Version),
            ("GET /", HeadError::RequestLine),
            ("GET /a#b HTTP/1.1", HeadError::Target),
            ("GET https://a\\@b/ HTTP/1.1", HeadError::Target),
            ("", HeadError::RequestLine),
        ] {
            assert_eq!(verdict(&format!("{line}\r\n\r\n")), Err(error), "{line:?}");
        }
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100));
        assert_eq!(verdict(&long), Err(HeadError::TargetTooLong));
        assert_eq!(
            verdict("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Err(HeadError::Framing),
            "HTTP/1.0 knows no chunks"
        );
    }

    proptest::proptest! {
        /// What is let through, the parser behind us (httparse, under hyper) reads to the same
        /// end, with one Host at most and one meaning of the length.
        #[test]
        fn what_is_let_through_the_parser_reads_alike(
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..24),
        ) {
            let text = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", pieces.concat());
            let on = Defences::all();
            let Ok(Ok(length)) = find_end(text.as_bytes(), 0, &on) else { return Ok(()) };
            let head = &text.as_bytes()[..length];
            let limits = HeadLimits { headers: 30, ..LIMITS };
            let Ok(facts) = judge(head, limits, &on) else { return Ok(()) };
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut parsed = httparse::Request::new(&mut headers);
            proptest::prop_assert_eq!(parsed.parse(head), Ok(httparse::Status::Complete(length)));
            let values = |name: &str| -> Vec<&[u8]> {
                let named = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
                named.map(|header| header.value).collect()
            };
            proptest::prop_assert!(values("host").len() <= 1);
            let framing = match (values("transfer-encoding").as_slice(), values("content-length").as_slice()) {
                ([], []) => Framing::None,
                ([], [length]) => match decimal(length) {
                    Some(0) => Framing::None,
                    Some(length) => Framing::Length(length),
                    None => return Err(proptest::test_runner::TestCaseError::fail("a length that is none")),
                },
                ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
                _ => return Err(proptest::test_runner::TestCaseError::fail("two lengths")),
            };
            proptest::prop_assert_eq!(facts.framing, framing);
        }
    }

    const PIECES: [&str; 24] = [
        "\r\n",
        "\r\n",
        "\r\n",
        "Host: a",
        "hOST:b",
        "Content-Length: 5",
        "content-length:0",
        "Content-Length",
        "Transfer-Encoding: chunked",
        "transfer-encoding:",
        "X-A: 1",
        "x",
        ":",
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "5",
        ",",
        "chunked",
        "\u{e9}",
        "Upgrade: websocket",
        "\u{7f}",
    ];
}
