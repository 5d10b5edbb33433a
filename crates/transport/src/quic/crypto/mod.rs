//! TLS 1.3 and packet protection (RFC 9001), from rustls and ring.
//!
//! A seed replaces the system's randomness and no clock is read, so the same seeds give the same bytes. Nothing here
//! keeps a secret: the key of the server is in the source.

pub mod certificate;
mod key_log;
mod protection;
mod provider;
mod session;

pub use key_log::take as take_secrets;
pub use protection::{
    OpenError, Sealer, decrypt, initial_keys, open, remove_header_protection, retry_tag,
};
pub use provider::drawing_from;
pub use session::{Level, Session, TlsError, client_config, keep, server_config};
