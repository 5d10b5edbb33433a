//! A peer acts on the progress of its stream, not on the clock: two peers and a wire, in virtual time.

use std::collections::BTreeMap;

use polypath_live::{Outcome, Peer, Settings};
use serde_json::{Value, json};

const MILLISECOND: u64 = 1_000_000;
const LIMIT_MS: u64 = 600_000;
/// One-way delays: a fast machine, a slow one, and one that hardly runs.
const DELAYS: [u64; 3] = [MILLISECOND / 100, 10 * MILLISECOND, 300 * MILLISECOND];
const CLIENT: [&str; 2] = ["10.9.0.2", "10.9.1.2"];
const SEND: u64 = 200_000;
const HELD: u64 = 600_000;

/// Both sides of a connection and the packets in flight: receiver and bytes, by arrival time and order.
struct Wire {
    delay: u64,
    now: u64,
    peers: [Peer; 2],
    in_flight: BTreeMap<(u64, usize), (usize, Vec<u8>)>,
    sent: usize,
}

impl Wire {
    fn new(delay: u64, client: &Value) -> Self {
        let settings = |role: &str, local: &[&str], more: &Value| -> Settings {
            let mut all = json!({
                "role": role, "local": local, "remote": "10.9.0.1:5001", "send": SEND, "limit_ms": LIMIT_MS, "seed": 7,
            });
            let more = more.as_object().unwrap().clone();
            all.as_object_mut().unwrap().extend(more);
            serde_json::from_value(all).unwrap()
        };
        let server = json!({ "send": 50_000 });
        Self {
            delay,
            now: 0,
            peers: [
                Peer::new(settings("connect", &CLIENT, client), 0).unwrap(),
                Peer::new(settings("accept", &["10.9.0.1"], &server), 0).unwrap(),
            ],
            in_flight: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Runs until both sides are over.
    fn run(mut self) -> [Outcome; 2] {
        while !self.peers.iter().all(|peer| peer.over(self.now)) {
            for (from, peer) in self.peers.iter_mut().enumerate() {
                peer.tick(self.now);
                for packet in peer.transmit() {
                    self.sent += 1;
                    let arrival = (self.now + self.delay, self.sent);
                    self.in_flight.insert(arrival, (1 - from, packet));
                }
            }
            let timers = self.peers.iter().map(Peer::next_deadline).min().unwrap();
            let arrival = self.in_flight.first_key_value();
            let arrival = arrival.map_or(u64::MAX, |((time, _), _)| *time);
            self.now = self.now.max(timers.min(arrival));
            while let Some(next) = self.in_flight.first_entry()
                && next.key().0 <= self.now
            {
                let (to, packet) = next.remove();
                self.peers[to].receive(&packet, self.now).unwrap();
            }
        }
        self.peers.map(|peer| peer.outcome())
    }
}

/// Acknowledged bytes per address of the client.
fn acked(client: &Outcome) -> [u64; 2] {
    CLIENT.map(|address| {
        let own = |subflow: &&polypath_live::Subflow| subflow.local.ip().to_string() == address;
        client.subflows.iter().filter(own).map(|s| s.acked).sum()
    })
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    outcome.counters.get(name).copied().unwrap_or(0)
}

fn acting(address: &str, deed: &str) -> Value {
    let action = json!({ "address": address, "acked": 5_000, "deed": deed });
    json!({ "subflows": 2, "held": HELD, "actions": [action] })
}

#[test]
fn a_backup_carries_nothing_of_what_was_held() {
    for delay in DELAYS {
        let [client, server] = Wire::new(delay, &acting(CLIENT[1], "backup")).run();
        let [first, second] = acked(&client);
        assert_eq!(client.ended.as_deref(), Some("finished"), "{delay}");
        assert_eq!(server.received, SEND + HELD, "{delay}");
        assert!((5_000..=SEND).contains(&second), "{delay}: {second}");
        assert!(first >= HELD, "{delay}: {first}");
        assert_eq!(counter(&server, "MPTcpExtMPPrioRx"), 1, "{delay}");
    }
}

#[test]
fn a_black_hole_opens_when_its_address_carried_enough() {
    for delay in DELAYS {
        for (dark, address) in CLIENT.into_iter().enumerate() {
            let [client, server] = Wire::new(delay, &acting(address, "black-hole")).run();
            assert_eq!(server.received, SEND + HELD, "{delay} {address}");
            let acked = acked(&client);
            assert!((5_000..=SEND).contains(&acked[dark]), "{delay}: {acked:?}");
            assert!(acked[1 - dark] >= HELD, "{delay}: {acked:?}");
            assert!(counter(&client, "TcpExtTCPTimeouts") > 0, "{delay}");
        }
    }
}

#[test]
fn an_address_goes_while_the_stream_is_open() {
    for delay in DELAYS {
        let [client, server] = Wire::new(delay, &acting(CLIENT[1], "remove")).run();
        assert_eq!(client.ended.as_deref(), Some("finished"), "{delay}");
        assert_eq!(server.received, SEND + HELD, "{delay}");
        assert_eq!(counter(&server, "MPTcpExtRmAddr"), 1, "{delay}");
    }
}

#[test]
fn nothing_is_written_before_the_subflows_are_there() {
    for (path_manager, received) in [("fullmesh", SEND), ("default", 0)] {
        let settings = json!({ "subflows": 2, "path_manager": path_manager });
        let [client, server] = Wire::new(10 * MILLISECOND, &settings).run();
        assert_eq!(server.received, received, "{path_manager}");
        assert_eq!(client.received, 50_000, "{path_manager}");
    }
}
