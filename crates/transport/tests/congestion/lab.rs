//! The paths of a connection and their controllers, without a network.

use polypath_transport::congestion::{Ack, CongestionControl, REGISTRY};
use polypath_transport::path::{CaState, Member, Path};
use polypath_transport::{MILLISECOND as MS, Nanos};
use serde_json::{Map, Value};

pub const MSS: u32 = 1400;

/// Every controller that sets no rate with every choice that its first textual parameter offers, its variants mostly.
pub fn variants() -> Vec<(String, Map<String, Value>)> {
    let mut found = Vec::new();
    let windowed = |name| {
        let made = REGISTRY.make(name, &Map::new());
        !made.expect("it is registered").paces()
    };
    for entry in REGISTRY.describe() {
        if !windowed(entry.name) {
            continue;
        }
        let choice = entry
            .parameters
            .iter()
            .find(|parameter| !parameter.choices.is_empty());
        match choice {
            None => found.push((entry.name.to_string(), Map::new())),
            Some(parameter) => {
                for choice in parameter.choices {
                    let chosen = parameters(parameter.name, choice);
                    found.push((format!("{} ({choice})", entry.name), chosen));
                }
            }
        }
    }
    found
}

pub fn parameters(name: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(name.to_string(), value.into())])
}

/// The paths of a connection, each with its controller, sending full windows.
pub struct Lab {
    pub paths: Vec<Path>,
    pub controllers: Vec<Box<dyn CongestionControl>>,
    pub rtt: Vec<Nanos>,
    pub sent: Vec<u64>,
    pub acked: Vec<u64>,
    pub now: Nanos,
}

impl Lab {
    pub fn new(name: &str, parameters: &Map<String, Value>, rtt: &[Nanos]) -> Self {
        let name = name.split(' ').next().expect("a name");
        let multipath = rtt.len() > 1;
        let controllers = rtt
            .iter()
            .map(|_| REGISTRY.make(name, parameters).expect("it is registered"))
            .collect();
        let paths = rtt
            .iter()
            .map(|&rtt| Path {
                established: true,
                multipath,
                srtt: rtt,
                min_rtt: rtt,
                latest_rtt: rtt,
                ..Path::new(MSS, 10)
            })
            .collect();
        let mut lab = Self {
            paths,
            controllers,
            rtt: rtt.to_vec(),
            sent: vec![0; rtt.len()],
            acked: vec![0; rtt.len()],
            now: 1_000 * MS,
        };
        for me in 0..rtt.len() {
            lab.controllers[me].on_established(&mut Member::new(&mut lab.paths, me));
        }
        lab
    }

    /// A round trip of `me` from `start` on: one ACK for every packet of the window, spread over the RTT.
    pub fn round(&mut self, me: usize, start: Nanos, limited: bool) {
        self.acknowledge(me, start, self.paths[me].cwnd, limited);
    }

    /// `packets` are sent and acknowledged from now on, while the window limits the sender.
    pub fn round_of(&mut self, me: usize, packets: u32) {
        self.acknowledge(me, self.now, packets, true);
    }

    /// A round trip is measured, and nothing acknowledged.
    pub fn measure(&mut self, me: usize, rtt: Nanos) {
        let ack = Ack {
            now: self.now,
            packets: 0,
            marked: 0,
            rtt: Some(rtt),
            cwnd_limited: true,
            next_seq: self.sent[me] + 1,
            una: self.acked[me] + 1,
        };
        self.controllers[me].on_sample(&mut Member::new(&mut self.paths, me), &ack);
    }

    /// One ACK of `packets` that were sent.
    pub fn delayed_ack(&mut self, me: usize, packets: u32) {
        self.sent[me] += u64::from(packets * MSS);
        self.hear(me, packets, true);
    }

    fn acknowledge(&mut self, me: usize, start: Nanos, packets: u32, limited: bool) {
        self.sent[me] += u64::from(packets * MSS);
        for index in 0..packets {
            self.now = start + self.rtt[me] * u64::from(index) / u64::from(packets);
            self.hear(me, 1, limited);
        }
        self.now = start + self.rtt[me];
    }

    fn hear(&mut self, me: usize, packets: u32, limited: bool) {
        self.acked[me] += u64::from(packets * MSS);
        let ack = Ack {
            now: self.now,
            packets,
            marked: 0,
            rtt: Some(self.rtt[me]),
            cwnd_limited: limited,
            next_seq: self.sent[me] + 1,
            una: self.acked[me] + 1,
        };
        self.paths[me].acked = self.acked[me];
        self.controllers[me].on_sample(&mut Member::new(&mut self.paths, me), &ack);
        self.controllers[me].on_ack(&mut Member::new(&mut self.paths, me), &ack);
    }

    /// What loss recovery does: the threshold is asked for and becomes the window; after a timeout, one packet.
    pub fn lose(&mut self, me: usize, state: CaState) {
        let threshold = self.controllers[me].ssthresh(&mut Member::new(&mut self.paths, me));
        self.paths[me].ssthresh = threshold;
        let timeout = state == CaState::Loss;
        if timeout {
            self.controllers[me].on_timeout(&mut Member::new(&mut self.paths, me));
        }
        self.paths[me].cwnd = if timeout { 1 } else { threshold };
        self.paths[me].cwnd_count = 0;
        for state in [state, CaState::Open] {
            self.paths[me].state = state;
            self.controllers[me].on_state(&mut Member::new(&mut self.paths, me), state);
        }
        if !timeout {
            self.controllers[me].on_reduced(&mut Member::new(&mut self.paths, me));
        }
    }

    pub fn threshold(&self, me: usize) -> String {
        match self.paths[me].ssthresh {
            u32::MAX => "-".into(),
            threshold => threshold.to_string(),
        }
    }
}
