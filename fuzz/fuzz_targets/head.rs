//! A head that the validator lets through ends, for the parser, at the same byte with as many
//! headers as it has lines; and a chunked body ends at the same byte however it is cut (R16).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(length) = edge_proxy::fuzz::head(bytes) {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut parsed = httparse::Request::new(&mut headers);
        // What the parser refuses is refused; what it takes, it must take as the validator did.
        if let Ok(status) = parsed.parse(bytes) {
            assert_eq!(status, httparse::Status::Complete(length));
            let lines = bytes[..length]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            assert_eq!(parsed.headers.len(), lines - 2);
        }
    }
    let whole = edge_proxy::fuzz::body_end(bytes, bytes.len());
    for piece in [1, 3] {
        assert_eq!(edge_proxy::fuzz::body_end(bytes, piece), whole);
    }
});
