//! The heads of HTTP/1.1 messages. Their bytes count as data, and their lengths are those on the wire.

/// A GET with Host, User-Agent and Accept.
pub(super) fn request_head(path: &str) -> String {
    REQUEST_HEAD.replacen("/file", path, 1)
}

/// `GET /file HTTP/1.1`, Host, User-Agent and Accept with their line ends.
pub(super) const REQUEST_HEAD: &str =
    "GET /file HTTP/1.1\r\nHost: server\r\nUser-Agent: polypath\r\nAccept: */*\r\n\r\n";

/// The response's head (RFC 9112 section 4, RFC 9110 section 8.6).
pub(super) fn response_head(size: u64) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nServer: polypath\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
    )
}
