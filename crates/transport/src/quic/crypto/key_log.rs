//! Secrets of handshakes in the form that Wireshark reads: lines of a label, the client's random and the secret, in hexadecimal.

use std::cell::RefCell;
use std::fmt::Write;

use rustls::KeyLog;

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Collects what rustls tells while it works for a session.
#[derive(Debug)]
pub(super) struct Collector;

impl KeyLog for Collector {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        };
        let line = format!("{label} {} {}", hex(client_random), hex(secret));
        LINES.with_borrow_mut(|lines| lines.push(line));
    }
}

/// Lines of a key log that handshakes on this thread told since this was last asked.
pub fn take() -> Vec<String> {
    LINES.take()
}
