//! Copa over real endpoints and a link with a rate and a queue.

use polypath_transport::{Config, MILLISECOND as MS, Mib, Nanos, SECOND};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use crate::bbr::Lab;
use crate::common::{Fate, Side, tcp};

/// What a packet takes at 10 Mbps.
const PACKET: f64 = 1.2;

fn lab(parameters: Value, queue: Nanos) -> Lab {
    let mut config = Config {
        congestion: "copa".into(),
        ..tcp()
    };
    if let Value::Object(parameters) = parameters {
        config.congestion.parameters = parameters;
    }
    let mut lab = Lab::of(&config, queue);
    lab.0.write(Side::Client, 1 << 40);
    lab
}

/// Section 2.1: the rate is 1/(delta d), so that about 1/delta packets are queued, and the link is full.
#[test]
fn one_over_delta_packets_are_queued() {
    for delta in [0.5, 0.1] {
        let mut lab = lab(json!({ "delta": delta, "competitive": false }), SECOND);
        let delays: f64 = (4_000..9_000)
            .map(|step| lab.at(step * MS).variable("queueing_delay_ms"))
            .sum();
        let packets = delays / 5_000.0 / PACKET;
        let target = 1.0 / delta;
        assert!(
            packets > 0.5 * target && packets < 2.0 * target,
            "{packets}"
        );
        let used = lab.utilisation(9 * SECOND, 15 * SECOND);
        assert!(used > 0.93, "{delta}: {used}");
    }
}

/// Section 2.2: alone it sees the queue nearly empty every few RTTs, and stays in its default mode for most of the time. A tenth of the five
/// packets that its queue ranges over is half a packet, and acknowledgements of two packets do not always show that.
#[test]
fn alone_it_does_not_compete() {
    let mut lab = lab(Value::Null, SECOND);
    let competes = (3_000..13_000)
        .filter(|step| lab.at(step * MS).variable("delta") < 0.5)
        .count();
    assert!(competes < 5_000, "{competes}");
}

/// Section 2.1: the window doubles each RTT until the rate is above its target.
#[test]
fn it_doubles_until_the_queue_grows() {
    let mut lab = lab(Value::Null, SECOND);
    let windows: Vec<u32> = [70, 115, 160, 205]
        .map(|time| lab.at(time * MS).cwnd)
        .into();
    assert_eq!(windows[0], 10);
    assert!(windows[1] >= 19 && windows[2] >= 36, "{windows:?}");
    assert!((60..600).map(|step| lab.at(step * 5 * MS).cwnd).max() < Some(100));
    assert_eq!(lab.0.counter(Side::Client, Mib::TcpRetransSegs), 0);
}

/// Section 2.2: in its default mode a loss says nothing.
#[test]
fn random_losses_do_not_slow_it() {
    let mut lab = lab(Value::Null, SECOND);
    let mut random = Pcg64Mcg::seed_from_u64(7);
    lab.0.hook(move |packet| {
        if packet.carries_data() && random.random_bool(0.01) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let used = lab.utilisation(3 * SECOND, 15 * SECOND);
    assert!(used > 0.85, "{used}");
}

/// A timeout is not forgotten, and the rate comes back.
#[test]
fn after_an_outage_it_returns_to_its_rate() {
    let mut lab = lab(Value::Null, SECOND);
    lab.at(3 * SECOND);
    lab.0.links[0].up = false;
    lab.at(4 * SECOND);
    lab.0.links[0].up = true;
    assert!(lab.0.counter(Side::Client, Mib::TcpExtTCPTimeouts) > 0);
    assert!(lab.utilisation(8 * SECOND, 12 * SECOND) > 0.9);
}
