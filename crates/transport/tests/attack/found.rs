//! Cases that failed once.

use polypath_transport::Config;

use crate::choices::Choices;
use crate::{quic, tcp};

/// Packets of one path that come on the other move it there and back, and each time the server takes another id for it, until one is left.
#[test]
fn a_path_that_is_moved_keeps_an_id() {
    let mut choices = Choices::of_seed(1_000_000_088_184);
    quic::everywhere(&mut choices, |_| Config::default());
}

/// A probe for the path's MTU was SACKed at the head of the queue, and a timeout had it sent again in pieces.
#[test]
fn a_sacked_probe_that_is_cut_counts_twice() {
    tcp::on_path(&mut Choices::of_seed(1_000_000_723_050));
}
