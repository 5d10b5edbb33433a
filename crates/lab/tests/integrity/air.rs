//! Links over Wi-Fi in place of rates.

use polypath_lab::plan::{Action, Medium, Plan, Wifi, WifiState};

use crate::draw::{Draw, MS, SECOND};

/// From this number on, of scenarios of TCP and of QUIC alike, there is Wi-Fi.
pub const FIRST: u64 = 100_000_000_000;

/// Makes some links Wi-Fi, on media of their own or on a shared one; not those with queues in hosts. Their rates do not change.
pub fn add(draw: &mut Draw, plan: &mut Plan) {
    plan.media = vec![Medium {
        name: "shared".into(),
    }];
    let mut made = Vec::new();
    for (index, link) in plan.links.iter_mut().enumerate() {
        if link.has_host_queue() || !draw.chance(0.5) {
            continue;
        }
        let medium = draw.maybe(0.5, |_| 0);
        for side in [&mut link.forward, &mut link.backward] {
            side.rate_bps = None;
            side.burst_bytes = 0;
            side.wifi = Some(Box::new(wifi(draw, medium)));
        }
        made.push(index);
    }
    for event in &mut plan.events {
        if let Action::Link { link, rate_bps, .. } = &mut event.action
            && made.contains(link)
        {
            *rate_bps = None;
        }
    }
}

fn wifi(draw: &mut Draw, medium: Option<usize>) -> Wifi {
    let count = draw.integer(1, 4) as usize;
    let next = |place: usize| -> Vec<f64> {
        let share = 1.0 / (count.max(2) - 1) as f64;
        let shares = (0..count).map(|other| if other == place { 0.0 } else { share });
        shares.collect()
    };
    let state = |draw: &mut Draw, place| WifiState {
        mcs: draw.integer(0, 7) as u32,
        error: draw.maybe(0.7, |draw| draw.number(0.0, 0.4)).unwrap_or(0.0),
        dwell_ns: (count > 1).then(|| draw.magnitude(MS, SECOND)),
        next: next(place),
    };
    Wifi {
        standard: draw.pick(&["802.11a", "802.11n", "802.11ac"]).into(),
        width_mhz: 20,
        streams: 1,
        short_guard: false,
        medium,
        states: (0..count).map(|place| state(draw, place)).collect(),
        packets: draw.integer(1, 64) as u32,
        aggregate_bytes: draw.magnitude(1_000, 1_000_000) as u32,
        airtime_ns: draw.magnitude(MS / 2, 5 * MS),
        attempts: draw.integer(4, 12) as u32,
    }
}
