//! A connection id that this side issued.

use polypath_wire::quic::ConnectionId;
use rand::RngCore;
use rand_pcg::Pcg64Mcg;

/// Length of the ids that are issued.
pub(super) const LEN: usize = 8;

pub(super) fn random_id(random: &mut Pcg64Mcg) -> ConnectionId {
    let mut bytes = [0; LEN];
    random.fill_bytes(&mut bytes);
    ConnectionId::new(&bytes)
}
