//! Whose connection a log is about.

use crate::application::Side;

/// What a log says of the connection's owner.
pub(crate) struct Owner<'a> {
    /// Of its application.
    pub name: &'a str,
    pub host: &'a str,
    pub side: Side,
}
