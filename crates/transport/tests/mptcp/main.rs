//! MPTCP (RFC 8684): each test is named by its rule.
//!
//! | module | rules |
//! |---|---|
//! | [`handshake`] | sections 3.1 and 3.2: keys, tokens, IDSN, MP_JOIN and its HMACs, losses at each step |
//! | [`data`] | section 3.3: mappings, data ACKs, DATA_FIN, the shared window, wraps |
//! | [`blocking`] | what received data waits for, at both levels |
//! | [`addresses`] | sections 3.3.8 and 3.4: ADD_ADDR, REMOVE_ADDR, MP_PRIO, backups |
//! | [`failure`] | sections 3.3.6, 3.5, 3.6: reinjection, MP_FASTCLOSE, MP_TCPRST, dead paths |
//! | [`fallback`] | section 3.7: options stripped, altered payload, MP_FAIL, infinite mappings |
//! | [`hostile`] | options that no honest peer sends |
//! | [`last_subflow`] | what becomes of a connection whose last subflow is gone |
//! | [`mtu_probing`] | RFC 4821 on subflows |
//! | [`packetdrill`] | what upstream's scripts (gtests/net/mptcp) ask of an endpoint |
//! | [`upstream`] | Linux net/mptcp: retransmission at connection level, stale subflows, queues |

#[allow(dead_code, reason = "the modules of tests use different parts")]
#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod blocking;
mod data;
mod failure;
mod fallback;
mod handshake;
mod hostile;
mod last_subflow;
mod mtu_probing;
mod packetdrill;
mod upstream;

use common::{MS, Pair, Side};
use polypath_transport::{Config, Nanos};

/// Two hosts alike with these paths, established with all subflows, the client having sent a little.
fn meshed(config: &Config, delays: &[Nanos]) -> Pair {
    let mut pair = Pair::new(config, delays);
    pair.write(Side::Client, 1);
    pair.run_for(1_000 * MS);
    assert_eq!(pair.established_subflows(), delays.len());
    assert_eq!(pair.server.read, 1);
    pair
}
