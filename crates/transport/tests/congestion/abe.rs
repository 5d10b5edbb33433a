//! Alternative backoff with ECN (RFC 8511).

use polypath_transport::path::{CaState, Member};
use serde_json::Map;

use crate::lab::Lab;

/// What a reduction of 100 packets leaves, as the callers order it: the threshold, then the state.
fn left(name: &str, abe: bool, state: CaState) -> u32 {
    let parameters = Map::from_iter([("abe".to_string(), abe.into())]);
    let mut lab = Lab::new(name, &parameters, &[10_000_000]);
    lab.paths[0].cwnd = 100;
    let mut path = Member::new(&mut lab.paths, 0);
    path.ssthresh = lab.controllers[0].ssthresh(&mut path);
    lab.controllers[0].on_state(&mut path, state);
    path.ssthresh
}

/// Section 3.1: 0.8 for Reno and 0.85 for CUBIC after a mark; a loss is answered as before.
#[test]
fn a_mark_leaves_more_than_a_loss() {
    for (name, usual, marked) in [("reno", 50, 80), ("cubic", 70, 85)] {
        assert_eq!(left(name, true, CaState::Cwr), marked);
        assert_eq!(left(name, true, CaState::Recovery), usual);
        assert_eq!(left(name, false, CaState::Cwr), usual);
    }
}
