//! Why nothing came of a capture.

use std::path::PathBuf;

/// A file that cannot be read at all. What is damaged further on is a warning instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}: not a capture; pcap and pcapng files are", path.display())]
    NoCapture { path: PathBuf },
    /// No file has a segment of TCP; `why` is what is to be said of the files.
    #[error("{what}: no segment of TCP in {packets} packets{why}")]
    NoTcp {
        what: String,
        packets: u64,
        why: String,
    },
}
