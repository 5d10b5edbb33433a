//! HTTP/0.9 over QUIC, under the name that interoperability tests use (ALPN `hq-interop`).
//!
//! The request is `GET /NAME` on a bidirectional stream that ends there. The answer is the file, or a reset of the
//! stream if there is no such file.

/// Bytes of a request at most.
pub(super) const LONGEST: usize = 4096;

/// Errors with which a stream is reset. HTTP/0.9 has none; these are ours.
pub(super) mod error {
    pub const NO_FILE: u64 = 1;
    pub const UNREADABLE: u64 = 2;
    pub const MALFORMED: u64 = 3;

    /// What one of them means.
    pub fn meaning(code: u64) -> &'static str {
        match code {
            NO_FILE => "it has no such file",
            UNREADABLE => "it cannot read the file",
            MALFORMED => "it does not take the request",
            _ => "it does not say why",
        }
    }
}

pub(super) fn request(name: &str) -> Vec<u8> {
    format!("GET /{name}\r\n").into_bytes()
}

/// The file that a request names. Whether the line ends with CR and LF, with one of them or with the stream does not matter.
pub(super) fn named(request: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(request)
        .ok()?
        .trim_end_matches(['\r', '\n']);
    line.strip_prefix("GET /")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_file() {
        assert_eq!(named(&request("a/b c")), Some("a/b c"));
        assert_eq!(named(b"GET /file"), Some("file"));
        assert_eq!(named(b"GET file\r\n"), None);
        assert_eq!(named(b"PUT /file\r\n"), None);
        assert_eq!(named(b"GET /\xff\r\n"), None);
    }
}
