//! A subflow of TCP or a path of QUIC, as recordings have it.

use polypath_transport::path::{Path, Totals};
use polypath_transport::{Nanos, Tuple};

/// What a recording says of a subflow or path.
pub(crate) struct Lane<'a> {
    pub tuple: Tuple,
    pub path: &'a Path,
    pub state: &'static str,
    pub totals: Totals,
    pub out_of_order_bytes: u64,
    pub backup: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
}
