//! Reports to congestion control about packets, their acknowledgements and losses.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use rand_pcg::Pcg64Mcg;

use super::*;
use crate::Codepoint;
use crate::accept::Accept;
use crate::algorithms::Algorithms;
use crate::congestion::{self, CongestionControl};
use crate::host::{BlackHoles, Ports};
use crate::path::{Member, Pacer, RateSample};
use crate::quic::connection::Connection;
use crate::quic::listener::{Greeting, Listener};
use crate::quic::window::LEAST_WINDOW;
use crate::settings::Config;
use crate::{MILLISECOND as MS, Retained, SECOND, Sessions, Tuple};

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 7000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), 443);
const RTT: Nanos = 20 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Threshold,
    State(CaState),
    Growth(u32),
    /// What a controller that paces has: packets, those lost with them, those lost so far.
    Control(u32, u32, u64),
    /// After so much idleness, which is more than a timeout.
    Restart(Nanos, bool),
    /// A timeout, and the end of a reduction.
    Timeout,
    Reduced,
}

/// A controller that keeps what it is told.
struct Recorder {
    told: Arc<Mutex<Vec<Told>>>,
    paces: bool,
    /// Asks for a reduction with the next growth.
    asks: bool,
}

impl Recorder {
    fn note(&self, told: Told) {
        self.told.lock().expect("no panic").push(told);
    }
}

impl CongestionControl for Recorder {
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        self.note(Told::Threshold);
        path.cwnd / 2
    }

    fn on_ack(&mut self, path: &mut Member, ack: &congestion::Ack) {
        self.note(Told::Growth(ack.packets));
        path.cwnd += ack.packets;
        if std::mem::take(&mut self.asks) {
            path.state = CaState::Cwr;
        }
    }

    fn paces(&self) -> bool {
        self.paces
    }

    fn control(&mut self, _: &mut Member, ack: &congestion::Ack, sample: &RateSample) -> bool {
        self.note(Told::Control(ack.packets, sample.newly_lost, sample.lost));
        false
    }

    fn on_state(&mut self, _: &mut Member, state: CaState) {
        self.note(Told::State(state));
    }

    fn on_restart(&mut self, _: &mut Member, restart: &congestion::Restart) {
        self.note(Told::Restart(restart.idle, restart.outdated));
    }

    fn on_timeout(&mut self, _: &mut Member) {
        self.note(Told::Timeout);
    }

    fn on_reduced(&mut self, _: &mut Member) {
        self.note(Told::Reduced);
    }
}

fn host(address: SocketAddr, seed: u128) -> Accept {
    let config = Config {
        multipath: false,
        initial_window: 40,
        ..Config::default()
    };
    Accept {
        config: Arc::new(config),
        algorithms: Algorithms::default(),
        addresses: vec![(address.ip(), false)],
        mtus: Vec::new(),
        ports: Ports::default(),
        black_holes: BlackHoles::default(),
        random: Pcg64Mcg::new(seed),
        sessions: Sessions::default(),
        retained: Retained::default(),
        isn: None,
    }
}

/// A client whose handshake and search for the MTU are over. From then on nothing that it sends arrives.
struct Lone {
    client: Connection,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Lone {
    fn new(paces: bool) -> Self {
        let (local, remote) = (CLIENT, SERVER);
        let (there, back) = (
            Tuple { local, remote },
            Tuple {
                local: remote,
                remote: local,
            },
        );
        let mut client = Connection::connect(host(CLIENT, 1), there, 0).expect("cubic exists");
        let first = &client.transmits()[0];
        let greeting = Listener::new(false, 1).greet(back, &first.datagram, first.len, 0);
        let Greeting::Accept(admission) = greeting else {
            panic!("{greeting:?}");
        };
        let mut server = Connection::admit(host(SERVER, 2), back, admission, 0).expect("as well");
        for round in 1..40 {
            let now = round * RTT;
            for sent in std::mem::take(client.transmits()) {
                server.on_datagram(back, &sent.datagram, sent.len, Codepoint::NotEct, now);
            }
            server.on_time(now);
            for sent in std::mem::take(server.transmits()) {
                client.on_datagram(there, &sent.datagram, sent.len, Codepoint::NotEct, now);
            }
            client.on_time(now);
        }
        assert!(
            client.transfer.packets.handshake.confirmed()
                && client.transfer.packets.in_flight(0) == 0
        );
        client.transfer.packets.paths.shown_mut(0).pacing_rate = 0;
        let mut lone = Self {
            client,
            told: Arc::default(),
        };
        lone.control(paces, false);
        lone
    }

    /// Gives it a controller.
    fn control(&mut self, paces: bool, asks: bool) {
        let told = Arc::clone(&self.told);
        let recorder = Recorder { told, paces, asks };
        let window = self.client.transfer.packets.paths[0].window_mut();
        window.set_congestion(Box::new(recorder));
    }

    /// Packets leave after so long, whose first number this gives.
    fn send(&mut self, after: Nanos, packets: u32) -> u64 {
        let client = &mut self.client;
        let now = client.transfer.packets.now + after;
        let first = client.transfer.packets.paths[0].space().sent.next();
        *client.transfer.packets.paths[0].window_mut().pacer() = Pacer::default();
        client.transfer.packets.paths.shown_mut(0).paced = false;
        client.write(
            u64::from(packets * client.transfer.packets.paths.shown(0).mss),
            now,
        );
        client.transmits().clear();
        let sent = client.transfer.packets.paths[0].space().sent.next() - first;
        assert!(sent >= u64::from(packets), "{sent}");
        first
    }

    /// An acknowledgement comes after so long; what is told of it.
    fn hear(&mut self, after: Nanos, low: u64, high: u64) -> Vec<Told> {
        self.hear_marked(after, low, high, 0)
    }

    /// The same where so many packets were marked by then.
    fn hear_marked(&mut self, after: Nanos, low: u64, high: u64, marked: u64) -> Vec<Told> {
        self.told();
        self.client.transfer.packets.now += after;
        self.client.transfer.on_application_ack(&Ack {
            ranges: vec![(low, high)],
            ecn: (marked > 0).then_some([0, 0, marked]),
            ..Ack::default()
        });
        self.told()
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told.lock().expect("no panic"))
    }

    fn path(&self) -> (CaState, u32) {
        (
            self.client.transfer.packets.paths.shown(0).state,
            self.client.transfer.packets.paths.shown(0).cwnd,
        )
    }
}

use CaState::{Cwr, Loss, Open, Recovery};
use Told::{Control, Growth, Reduced, Restart, State, Threshold, Timeout};

/// Linux `bbr_ssthresh`, `bbr_set_cwnd_to_recover_or_restore`.
#[test]
fn a_controller_that_paces_hears_of_everything_and_of_the_end_of_recovery() {
    let mut lone = Lone::new(true);
    let first = lone.send(0, 20);
    let told = lone.hear(RTT, first + 1, first + 5);
    assert_eq!(told, [Threshold, State(Recovery), Control(5, 1, 1)]);
    assert_eq!(lone.hear(MS, first + 6, first + 7), [Control(2, 0, 1)]);
    assert_eq!(lone.path().0, Recovery);
    let next = lone.send(MS, 1);
    let told = lone.hear(RTT, first + 8, next);
    assert_eq!(
        told,
        [State(Open), Control((next - first) as u32 - 7, 0, 1)]
    );
    assert_eq!(lone.path().0, Open);
}

/// Linux `tcp_fastretrans_alert`, Chromium `BbrSender::UpdateRecoveryState`.
#[test]
fn losses_before_recovery_is_over_prolong_it_where_a_rate_is_set() {
    let mut lone = Lone::new(true);
    let first = lone.send(0, 20);
    let told = lone.hear(RTT, first + 1, first + 5);
    assert_eq!(told, [Threshold, State(Recovery), Control(5, 1, 1)]);
    let next = lone.send(MS, 10);
    // Of those that left before the first loss was found another one is missing.
    let told = lone.hear(MS, first + 7, first + 10);
    assert_eq!(told, [Control(4, 1, 2)]);
    let told = lone.hear(RTT, first + 11, next + 2);
    let rest = (next - first) as u32 - 11;
    assert_eq!(
        told,
        [Control(rest + 3, 0, 2)],
        "these left before the second loss was found"
    );
    let last = lone.send(MS, 1);
    let told = lone.hear(RTT, next + 3, last);
    assert_eq!(told[0], State(Open));
}

/// RFC 6675 section 5: recovery covers everything that had left when it began.
#[test]
fn recovery_lasts_while_something_from_before_it_is_under_way() {
    let mut lone = Lone::new(true);
    let first = lone.send(0, 10);
    let late = lone.send(RTT - MS, 1);
    lone.hear(MS, first + 1, late - 1);
    let next = lone.send(MS, 1);
    let told = lone.hear(RTT, next, next);
    assert_eq!(told, [Control(1, 0, 1)], "one of before may be late");
    let last = lone.send(0, 1);
    let told = lone.hear(0, late, late);
    assert_eq!(told, [Control(1, 0, 1)]);
    let told = lone.hear(RTT, next + 1, last);
    assert_eq!(told[0], State(Open));
}

/// Linux `tcp_enter_cwr`: a mark is no loss, and a loss that follows is one.
#[test]
fn a_mark_begins_a_reduction_and_no_recovery() {
    let mut lone = Lone::new(true);
    let first = lone.send(0, 20);
    let told = lone.hear_marked(RTT, first, first + 5, 1);
    assert_eq!(told, [Threshold, State(Cwr), Control(6, 0, 0)]);
    let told = lone.hear_marked(MS, first + 7, first + 9, 1);
    assert_eq!(told, [State(Recovery), Control(3, 1, 1)]);
    let told = lone.hear_marked(MS, first + 10, first + 12, 2);
    assert_eq!(told, [Control(3, 0, 1)]);
    assert_eq!(lone.path().0, Recovery);
}

#[test]
fn a_controller_that_paces_hears_of_losses_that_a_timer_found() {
    let mut lone = Lone::new(true);
    let first = lone.send(0, 3);
    let told = lone.hear(RTT, first + 1, first + 2);
    assert_eq!(told, [Control(2, 0, 0)]);
    let due = lone.client.transfer.packets.paths[0]
        .space()
        .sent
        .loss_deadline();
    lone.client.on_time(due);
    assert_eq!(lone.told()[..2], [Threshold, State(Recovery)]);
    let repeated = first + 3;
    let next = lone.send(MS, 1);
    let told = lone.hear(RTT, repeated, next);
    assert_eq!(told, [State(Open), Control(2, 0, 1)]);
}

/// RFC 9000 section 14.4.
#[test]
fn a_lost_probe_of_the_mtu_is_no_loss() {
    let mut lone = Lone::new(true);
    lone.client.transfer.packets.paths[0]
        .datagram_size_mut()
        .limit(2_000);
    let first = lone.send(0, 10);
    let sent = &lone.client.transfer.packets.paths[0].space().sent;
    let probes = sent.iter().filter(|packet| packet.carried.is_probe());
    let probes: Vec<_> = probes.map(|packet| packet.number).collect();
    assert_eq!(probes, [first]);
    let told = lone.hear(RTT, first + 1, first + 5);
    assert_eq!(told, [Control(5, 0, 0)]);
}

/// Linux `cubictcp_cwnd_event_tx_start` and its like.
#[test]
fn what_leaves_after_idleness_restarts_the_controller() {
    let mut lone = Lone::new(false);
    let first = lone.send(SECOND, 2);
    lone.told();
    lone.send(MS, 1);
    assert_eq!(lone.told(), [], "something was in flight");
    lone.hear(RTT, first, first + 2);
    let first = lone.send(5 * SECOND, 2);
    assert_eq!(lone.told(), [Restart(5 * SECOND + RTT, true)]);
    let last = lone.client.transfer.packets.paths[0].space().sent.next() - 1;
    lone.hear(RTT, first, last);
    lone.send(MS, 1);
    assert_eq!(lone.told(), [Restart(RTT + MS, false)]);
}

/// RFC 9002 section 7.3.2, appendices A.7 and B.5.
#[test]
fn the_acknowledgement_that_reports_a_loss_grows_nothing() {
    let mut lone = Lone::new(false);
    let first = lone.send(0, 10);
    let told = lone.hear(RTT, first + 3, first + 6);
    assert_eq!(told, [Threshold, State(Recovery)]);
    assert_eq!(lone.path(), (Recovery, 20));
    let next = lone.send(MS, 1);
    let told = lone.hear(RTT, next, next);
    assert_eq!(told, [State(Open), Reduced, Growth(1)]);
}

/// Linux `tcp_enter_cwr`, by which a controller reduces the window; what left before takes no part in another reduction.
#[test]
fn a_controller_may_ask_for_a_reduction() {
    let mut lone = Lone::new(false);
    lone.control(false, true);
    let first = lone.send(0, 20);
    let (_, before) = lone.path();
    let told = lone.hear(RTT, first, first + 1);
    assert_eq!(told, [Growth(2), Threshold, State(Cwr)]);
    assert_eq!(lone.path(), (Cwr, (before + 2) / 2));
    assert_eq!(lone.hear(MS, first + 6, first + 7), [], "a loss of before");
    let next = lone.send(MS, 1);
    let told = lone.hear(RTT, next, next);
    assert_eq!(told, [State(Open), Reduced, Growth(1)]);
}

/// RFC 8257 section 3.3, with a weight of 1/2: the counts of marks tell which part of the packets had one.
#[test]
fn dctcp_knows_how_many_were_marked() {
    let mut lone = Lone::new(false);
    let weight = serde_json::Map::from_iter([("shift_g".to_string(), 1.into())]);
    let made = congestion::REGISTRY.make("dctcp", &weight);
    let window = lone.client.transfer.packets.paths[0].window_mut();
    window.set_congestion(made.expect("it is registered"));
    let first = lone.send(0, 4);
    lone.hear(RTT, first, first + 3);
    let mut marks = 0;
    let mut mark = |lone: &mut Lone, marked: u64| {
        let first = lone.send(MS, 4);
        let before = lone.path().1;
        marks += marked;
        lone.hear_marked(RTT, first, first + 3, marks);
        (before, lone.path().1)
    };
    // Half of 1024 is left, and a half of that is taken.
    let (before, after) = mark(&mut lone, 2);
    assert_eq!(after, before - before * 512 / 2048);
    // Two of four were marked.
    let (before, after) = mark(&mut lone, 4);
    assert_eq!(after, before - before * (256 + 256) / 2048);
    // All were.
    let (before, after) = mark(&mut lone, 1);
    assert_eq!(after, before - before * (256 + 512) / 2048);
}

/// RFC 9002 section 7.6.2, RFC 9438 section 4.8.
#[test]
fn persistent_congestion_is_a_timeout_to_the_controller() {
    for paces in [false, true] {
        let mut lone = Lone::new(paces);
        let first = lone.send(0, 5);
        lone.send(SECOND, 5);
        let mut told = lone.hear(RTT, first + 9, first + 9);
        if paces {
            assert_eq!(told.pop(), Some(Control(0, 7, 7)));
        }
        assert_eq!(told, [Threshold, State(Recovery), Timeout, State(Loss)]);
        assert_eq!(lone.path(), (Recovery, LEAST_WINDOW));
        let told = lone.hear(MS, first + 7, first + 8);
        if paces {
            assert_eq!(told, [Control(2, 0, 7)]);
            let next = lone.send(MS, 1);
            let told = lone.hear(RTT, first + 10, next);
            assert_eq!(told.first(), Some(&State(Open)));
        } else {
            assert_eq!(told, [State(Open), Growth(2)]);
        }
        assert_eq!(lone.path().0, Open);
    }
}

/// Rates are of stream bytes, as the segments of `mss` bytes that windows count.
#[test]
fn the_pacer_counts_what_rates_are_of() {
    let mut lone = Lone::new(true);
    let path = lone.client.transfer.packets.paths.shown_mut(0);
    path.pacing_rate = 10_000_000;
    let time = u64::from(path.mss) * SECOND / path.pacing_rate;
    let client = &mut lone.client;
    *client.transfer.packets.paths[0].window_mut().pacer() = Pacer::default();
    let first = client.transfer.packets.paths[0].space().sent.next();
    client.write(1_000_000, client.transfer.packets.now + SECOND);
    // Pacing begins with the tenth packet; half of the time makes up for idleness.
    let paced = client.transfer.packets.paths[0].space().sent.next() - first - 9;
    let wait = client.transfer.packets.paths[0]
        .window_mut()
        .pacer()
        .departure(client.transfer.packets.now)
        - client.transfer.packets.now;
    assert_eq!(wait, paced * (time - time / 2));
}
