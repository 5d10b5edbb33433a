//! Loss recovery and congestion control when packets and their acknowledgements are lost (RFC 9002).

use polypath_transport::path::CaState;
use polypath_transport::quic::{Codepoint, Note, Transmit};
use polypath_transport::settings::Buffer;
use polypath_transport::{Choice, Config, Event, EventKind, MILLISECOND as MS, SECOND};
use polypath_wire::quic::{Frame, Kind};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::common::{client_address, reversed};
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn has(transmit: &Transmit, wanted: impl Fn(&Frame) -> bool) -> bool {
    let packets = &transmit.datagram.packets;
    packets.iter().flat_map(|packet| &packet.frames).any(wanted)
}

fn losses(pair: &mut Pair) -> usize {
    let events = pair.client.events().iter();
    let losses = events.filter(|event| matches!(event.kind, EventKind::Loss(0)));
    losses.count()
}

fn marking() -> Config {
    Config {
        ecn: true,
        congestion: "reno".into(),
        ..quic()
    }
}

/// RFC 9002 section 6.2.1.
#[test]
fn a_client_keeps_its_backoff_until_its_address_is_validated() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    let mut first = true;
    pair.fate = Box::new(move |side, _, _, _| {
        let lost = side == Side::Server || std::mem::take(&mut first);
        if lost { Fate::Drop } else { Fate::Pass }
    });
    let of_server = |pair: &Pair| {
        let mut sent = pair.sent.iter();
        sent.find(|(_, side, ..)| *side == Side::Server).cloned()
    };
    pair.run_until(2 * SECOND, |pair| of_server(pair).is_some());
    assert_eq!(pair.client.packets().metrics(0).pto_count, 1);
    // Of the server's datagram only the Initial packet arrives, which acknowledges the client's.
    let (.., transmit) = of_server(&pair).expect("it answers");
    let mut datagram = transmit.datagram.clone();
    datagram.packets.truncate(1);
    let (tuple, now) = (reversed(transmit.tuple), pair.now);
    (pair.client).on_datagram(tuple, &datagram, 1200, Codepoint::NotEct, now);
    assert!(
        pair.client.packets().metrics(0).rtt.is_some(),
        "it is taken"
    );
    assert_eq!(pair.client.packets().metrics(0).pto_count, 1);
}

/// RFC 9000 section 9.4, RFC 9002 section 7.6.2.
#[test]
fn what_the_former_path_lost_is_no_persistent_congestion_of_the_new_one() {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 30 * MS)];
    let mut pair = Pair::new(&quic(), &quic(), links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let now = pair.now;
    pair.client.write(2_000_000, now);
    pair.run_until(now + 500 * MS, |_| false);
    pair.fate = Box::new(|_, link, _, _| if link == 0 { Fate::Drop } else { Fate::Pass });
    let moves = pair.now + 2 * SECOND;
    pair.run_until(moves, |_| false);
    assert!(pair.client.migrate_to(0, client_address(1), moves));
    let mut least = u32::MAX;
    pair.run_until(moves + SECOND, |pair| {
        least = least.min(pair.client.paths()[0].cwnd);
        false
    });
    assert!(pair.client.paths()[0].srtt > 0, "it has moved");
    assert_eq!(least, 10, "the initial window");
}

/// RFC 9000 section 9.4.
#[test]
fn acknowledgements_of_the_former_path_are_no_round_trips_of_the_new_one() {
    let config = Config {
        congestion: "cubic".into(),
        ..quic()
    };
    let links = vec![link(20 * MBPS, 20 * MS), link(0, 50 * MS)];
    let mut pair = Pair::new(&config, &config, links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let now = pair.now;
    (pair.server_mut()).write(6_000_000, now);
    pair.run_until(now + SECOND, |_| false);
    let now = pair.now;
    pair.hears_former = true;
    assert!(pair.client.migrate_to(0, client_address(1), now));
    pair.run_until(now + 60 * MS, |_| false);
    let window = |pair: &Pair| {
        let path = &pair.server().paths()[0];
        (path.cwnd, path.in_slow_start())
    };
    assert_eq!(window(&pair), (10, true), "it has moved");
    pair.run_until(now + 5 * SECOND, |pair| window(pair).0 > 60);
    let (cwnd, in_slow_start) = window(&pair);
    assert!(
        cwnd > 60 && in_slow_start,
        "{cwnd}: nothing delays packets there"
    );
}

/// RFC 9000 section 13.4.1.
#[test]
fn marks_are_counted_for_each_number_space() {
    let mut pair = Pair::new(&marking(), &marking(), vec![link(0, 20 * MS)], 1);
    let mut of_application = 0;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let kind = &transmit.datagram.packets[0].header.kind;
        match kind {
            _ if side == Side::Server => Fate::Pass,
            Kind::Initial { .. } => Fate::Marked,
            Kind::OneRtt { .. } => {
                of_application += 1;
                // What left as the first mark was told is no part of another reduction.
                match of_application {
                    1 => Fate::Drop,
                    2 => Fate::Marked,
                    _ => Fate::Pass,
                }
            }
            _ => Fate::Pass,
        }
    });
    pair.establish();
    assert_eq!(losses(&mut pair), 1, "of the first level");
    let now = pair.now;
    pair.client.write(1_000, now);
    pair.run_until(now + 300 * MS, |_| false);
    assert_eq!(losses(&mut pair), 2, "of the application's");
}

/// RFC 9000 section 13.4.2.1.
#[test]
fn a_path_that_clears_marks_is_sent_no_more_of_them() {
    let mut pair = Pair::new(&marking(), &marking(), vec![link(0, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(20_000, now);
    pair.run_until(now + 300 * MS, |_| false);
    // The counts stay as they are from now on.
    pair.fate = Box::new(|_, _, _, _| Fate::Cleared);
    let now = pair.now;
    pair.client.write(20_000, now);
    pair.run_until(now + 300 * MS, |_| false);
    pair.sent.clear();
    let now = pair.now;
    pair.client.write(20_000, now);
    pair.run_until(now + 300 * MS, |_| false);
    let of_client = pair.sent.iter().filter(|sent| sent.1 == Side::Client);
    let marked = of_client
        .filter(|(.., transmit)| transmit.ecn != Codepoint::NotEct)
        .count();
    assert_eq!((pair.read[1], marked), (60_000, 0));
}

/// RFC 9000 section 13.3.
#[test]
fn a_limit_that_holds_data_back_is_told_again_if_that_was_lost() {
    let size = 20_000;
    let config = Config {
        receive_buffer: Buffer::from([size; 3]),
        ..quic()
    };
    let mut pair = Pair::new(&quic(), &config, vec![link(0, 20 * MS)], 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let mut now = pair.now;
    pair.client.write(50_000, now);
    // Nobody reads: the limits stay.
    let blocked = |frame: &Frame| {
        matches!(
            frame,
            Frame::DataBlocked(_) | Frame::StreamDataBlocked { .. }
        )
    };
    let server = pair.server.as_mut().expect("established");
    let (mut told, until) = (0, now + 2 * SECOND);
    while now < until {
        for transmit in std::mem::take(pair.client.transmits()) {
            if has(&transmit, blocked) {
                told += 1;
                if told == 1 {
                    continue;
                }
            }
            let tuple = reversed(transmit.tuple);
            server.on_datagram(
                tuple,
                &transmit.datagram,
                transmit.len,
                Codepoint::NotEct,
                now,
            );
        }
        for transmit in std::mem::take(server.transmits()) {
            let (tuple, client) = (reversed(transmit.tuple), &mut pair.client);
            client.on_datagram(
                tuple,
                &transmit.datagram,
                transmit.len,
                Codepoint::NotEct,
                now,
            );
        }
        if pair.client.transmits().is_empty() {
            now = pair.client.next_deadline().min(server.next_deadline());
            server.on_time(now);
            pair.client.on_time(now);
        }
    }
    assert_eq!(told, 2);
}

/// RFC 9000 section 14.1.
#[test]
fn a_server_that_may_send_little_sends_no_short_initial_packet() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    // A client whose first datagram is longer leaves more than three of the least length.
    let mut transmit = pair.client.transmits().pop().expect("it begins");
    transmit.datagram.packets[0].frames.push(Frame::Padding(50));
    transmit.len += 50;
    pair.client.transmits().push(transmit);
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        count += u32::from(side == Side::Client);
        if side == Side::Client && count > 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(20 * SECOND, |_| false);
    let of_server = pair.sent.iter().filter(|sent| sent.1 == Side::Server);
    for (.., transmit) in of_server {
        let packets = transmit.datagram.packets.iter();
        let mut initial = packets.filter(|it| matches!(it.header.kind, Kind::Initial { .. }));
        let eliciting = initial.any(|it| it.frames.iter().any(Frame::ack_eliciting));
        assert!(!eliciting || transmit.len >= 1200, "{} bytes", transmit.len);
    }
}

/// RFC 9000 section 9.4.
/// In which phase ProbeBW begins is drawn (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.4.3).
#[test]
fn bbr_draws_from_the_seed_of_its_host() {
    let config = Config {
        congestion: "bbr".into(),
        ..quic()
    };
    let rates = |seed: u128| {
        let mut pair = Pair::new(&config, &config, vec![link(10 * MBPS, 20 * MS)], seed);
        pair.establish();
        let now = pair.now;
        pair.client.write(50_000_000, now);
        let mut rates = Vec::new();
        for step in 1..=80 {
            pair.run_until(now + step * 25 * MS, |_| false);
            rates.push(pair.client.paths()[0].pacing_rate);
        }
        rates
    };
    let first = rates(1);
    assert_eq!(first, rates(1));
    assert!((2..6).any(|seed| rates(seed) != first));
}

/// BBR version 3, Copa, Vivace and MPCC over QUIC: all of the bandwidth, a short queue, and nothing lost where the queue is long.
#[test]
fn rates_that_are_set_keep_the_queue_short() {
    for congestion in ["bbr3", "copa", "vivace", "mpcc"] {
        let config = Config {
            congestion: congestion.into(),
            ..quic()
        };
        let mut pair = Pair::new(&config, &config, vec![link(10 * MBPS, 20 * MS)], 1);
        pair.establish();
        let now = pair.now;
        pair.client.write(50_000_000, now);
        pair.run_until(now + 6 * SECOND, |_| false);
        let before = pair.client.paths()[0].acked;
        let mut longest = 0;
        for step in 1..=800 {
            pair.run_until(now + 6 * SECOND + step * 5 * MS, |_| false);
            longest = longest.max(pair.client.paths()[0].srtt);
        }
        let acked = pair.client.paths()[0].acked - before;
        let rate = acked as f64 * 8.0 / 4.0 / 10e6;
        assert!(rate > 0.85, "{congestion}: {rate}");
        // A growing RTT weighs little in MPCC (1, not 900), which fills the queue now and then.
        let bound = if congestion == "mpcc" { 150 } else { 90 };
        assert!(longest < bound * MS, "{congestion}: {longest}");
    }
}

#[test]
fn the_rate_of_the_former_path_is_not_that_of_the_new_one() {
    let config = Config {
        congestion: "bbr".into(),
        ..quic()
    };
    let links = vec![link(50 * MBPS, 40 * MS), link(2 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&config, &config, links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let now = pair.now;
    (pair.server_mut()).write(50_000_000, now);
    pair.run_until(now + 3 * SECOND, |_| false);
    let rate = |pair: &Pair| pair.server().paths()[0].pacing_rate;
    assert!(rate(&pair) > 4_000_000, "{} bytes/s", rate(&pair));
    let now = pair.now;
    pair.hears_former = true;
    assert!(pair.client.migrate_to(0, client_address(1), now));
    pair.run_until(now + 600 * MS, |_| false);
    // Startup paces at 2.89 times what was delivered, which comes in bursts.
    assert!(rate(&pair) < 1_000_000, "{} bytes/s", rate(&pair));
}

/// RFC 9000 section 9.4: the new path's controller is a new one, whose window no handshake began.
#[test]
fn every_controller_goes_on_after_a_migration() {
    for entry in polypath_transport::congestion::REGISTRY.describe() {
        let config = Config {
            congestion: entry.name.into(),
            ..quic()
        };
        let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 10 * MS)];
        let mut pair = Pair::new(&config, &config, links, 1);
        pair.establish();
        pair.run_until(300 * MS, |_| false);
        let now = pair.now;
        assert!(pair.client.migrate_to(0, client_address(1), now));
        // The first acknowledgements are of little, and no window held it back.
        for _ in 0..4 {
            let now = pair.now;
            (pair.server_mut()).write(500, now);
            pair.run_until(now + 100 * MS, |_| false);
        }
        let before = pair.server().paths()[0].acked;
        let now = pair.now;
        (pair.server_mut()).write(1_000_000, now);
        pair.run_until(now + 5 * SECOND, |_| false);
        let acked = pair.server().paths()[0].acked - before;
        assert!(acked >= 1_000_000, "{}: {acked}", entry.name);
    }
}

/// draft-khalili-mptcp-congestion-control-05 section 3.2: l_r is in bytes, those between the last two losses or since the last, whichever is
/// more; RFC 9000 section 9.4.
#[test]
fn olia_counts_bytes_between_losses_on_the_path_as_it_is() {
    let config = Config {
        congestion: "olia".into(),
        ..quic()
    };
    let links = vec![link(0, 20 * MS), link(0, 30 * MS)];
    let mut pair = Pair::new(&config, &config, links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let full = side == Side::Client && transmit.len > 1000;
        count += u32::from(full);
        if full && count == 60 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    pair.client.write(150_000, now);
    let mut at_loss = None;
    pair.run_until(now + SECOND, |pair| {
        let path = &pair.client.paths()[0];
        if path.state == CaState::Recovery {
            at_loss.get_or_insert(path.acked);
        }
        let before = at_loss.unwrap_or(path.acked);
        assert_eq!(path.between_losses, before.max(path.acked - before));
        false
    });
    assert!(at_loss.is_some_and(|bytes| bytes > 30_000), "{at_loss:?}");
    let now = pair.now;
    assert!(pair.client.migrate_to(0, client_address(1), now));
    assert_eq!(pair.client.paths()[0].between_losses, 0);
    pair.client.write(50_000, now);
    pair.run_until(now + SECOND, |_| false);
    assert_eq!(pair.client.paths()[0].between_losses, 50_000);
}

/// RFC 9000 section 12.3.
#[test]
fn what_comes_much_later_is_no_duplicate() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let server = pair.server_mut();
    server.packets_mut().take_notes();
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        count += u32::from(side == Side::Client);
        if side == Side::Client && count == 10 {
            Fate::Late(500 * MS)
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    pair.client.write(1_000_000, now);
    let server = pair.server_mut();
    server.write(1_000_000, now);
    pair.run_until(now + 5 * SECOND, |pair| pair.read == [1_000_000; 2]);
    assert_eq!(pair.read, [1_000_000; 2]);
    let server = pair.server_mut();
    let notes = server.packets_mut().notes();
    let dropped = notes
        .iter()
        .filter(|note| matches!(note, Note::Dropped { .. }));
    assert_eq!(dropped.count(), 0);
}

/// Linux `hystart_update`: where packets are paced, acknowledgements are spread over the round trip however fast the path is.
#[test]
fn pacing_does_not_end_slow_start() {
    let config = Config {
        congestion: "cubic".into(),
        ..quic()
    };
    let first = |rate| {
        let mut pair = Pair::new(&config, &config, vec![link(rate, 20 * MS)], 1);
        pair.establish();
        let now = pair.now;
        pair.client.write(100_000_000, now);
        let threshold = |pair: &Pair| pair.client.paths()[0].ssthresh;
        pair.run_until(now + 3 * SECOND, |pair| threshold(pair) < u32::MAX);
        threshold(&pair)
    };
    let (slow, fast) = (first(100 * MBPS), first(1_000 * MBPS));
    assert!(fast > 2 * slow, "{slow}, {fast}");
}

/// Linux `bbr_set_cwnd_to_recover_or_restore`.
#[test]
fn bbr_recovers_for_a_round_trip_and_returns_to_its_window() {
    let config = Config {
        congestion: "bbr".into(),
        ..quic()
    };
    let mut pair = Pair::new(&config, &config, vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(50_000_000, now);
    pair.run_until(now + 3 * SECOND, |_| false);
    let path = |pair: &Pair| {
        let path = &pair.client.paths()[0];
        (path.state, path.cwnd)
    };
    let before = path(&pair);
    assert_eq!(before.0, CaState::Open);
    let mut first = true;
    pair.fate = Box::new(move |side, _, _, _| {
        let lost = side == Side::Client && std::mem::take(&mut first);
        if lost { Fate::Drop } else { Fate::Pass }
    });
    let now = pair.now;
    pair.run_until(now + 200 * MS, |pair| path(pair).0 == CaState::Recovery);
    let (state, cwnd) = path(&pair);
    assert_eq!(state, CaState::Recovery);
    assert!(cwnd < before.1, "as many leave as arrive: {cwnd}");
    let now = pair.now;
    pair.run_until(now + 100 * MS, |pair| path(pair).0 == CaState::Open);
    assert_eq!(path(&pair).0, CaState::Open);
    assert!(
        path(&pair).1 >= before.1,
        "{} after {}",
        path(&pair).1,
        before.1
    );
}

/// Cardwell et al., CACM 60(2) 2017, figure 8: what is lost at random costs itself and no more. 20 Mbps and 100 ms hold 170 packets, of which
/// several are lost each round trip: that is one episode of recovery, and packets are conserved in its first round trip alone.
#[test]
fn bbr_keeps_its_rate_where_every_round_trip_loses_packets() {
    let config = Config {
        congestion: "bbr".into(),
        ..quic()
    };
    for loss in [0.02, 0.05, 0.1, 0.15] {
        let mut pair = Pair::new(&config, &config, vec![link(20 * MBPS, 50 * MS)], 1);
        pair.establish();
        let mut random = Pcg64Mcg::seed_from_u64(7);
        pair.fate = Box::new(move |side, _, _, _| {
            let lost = side == Side::Client && random.random_bool(loss);
            if lost { Fate::Drop } else { Fate::Pass }
        });
        let now = pair.now;
        pair.client.write(100_000_000, now);
        pair.run_until(now + 3 * SECOND, |_| false);
        let before = pair.read[1];
        pair.run_until(now + 9 * SECOND, |_| false);
        let mbps = (pair.read[1] - before) as f64 * 8.0 / 6.0 / 1e6;
        // Of 1,200 bytes of a datagram and 28 of its headers, the payload.
        let most = 20.0 * (1.0 - loss) * 1163.0 / 1228.0;
        assert!(mbps > 0.9 * most, "{mbps} of {most} Mbps at {loss}");
    }
}

/// Paasch et al. 2013; kMinimumWindow (RFC 9002 section 7.2).
#[test]
fn a_penalty_spares_slow_start() {
    let small = Config {
        receive_buffer: Buffer::from([60_000; 3]),
        congestion: "reno".into(),
        scheduler: Choice {
            name: "default".into(),
            // The slow path, which blocks the other, is to get data.
            parameters: [("waits_for_pacer".to_string(), false.into())]
                .into_iter()
                .collect(),
        },
        ..multipath()
    };
    let links = vec![link(20 * MBPS, 10 * MS), link(20 * MBPS, 100 * MS)];
    let mut pair = Pair::new(&small, &small, links, 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(50_000_000, now);
    let (mut penalties, mut least) = (0, u32::MAX);
    pair.run_until(now + 5 * SECOND, |pair| {
        let events = std::mem::take(pair.client.events());
        let penalised = |event: &Event| matches!(event.kind, EventKind::Penalised(1));
        penalties += events.into_iter().filter(penalised).count();
        let windows = pair.client.paths().iter().map(|path| path.cwnd);
        least = windows.fold(least, u32::min);
        false
    });
    let path = &pair.client.paths()[1];
    assert!(penalties > 0);
    assert_eq!(path.ssthresh, u32::MAX, "nothing was lost");
    assert_eq!(least, 2);
}

/// RFC 9000 section 9.4.
#[test]
fn what_is_in_flight_on_the_former_path_takes_no_room_on_the_new_one() {
    let links = vec![link(5 * MBPS, 20 * MS), link(100 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&quic(), &quic(), links, 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    let now = pair.now;
    pair.client.write(5_000_000, now);
    pair.run_until(now + SECOND, |_| false);
    assert!(pair.client.paths()[0].in_flight >= 10);
    let now = pair.now;
    pair.client.transmits().clear();
    assert!(pair.client.migrate_to(0, client_address(1), now));
    let path = &pair.client.paths()[0];
    assert_eq!((path.in_flight, path.cwnd), (10, 10), "the initial window");
    assert_eq!(pair.client.packets().metrics(0).packets_in_flight, 10);
}
