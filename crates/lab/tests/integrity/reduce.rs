//! Makes a failing plan smaller, for as long as it fails in the same way.

use polypath_lab::plan::{Action, Application, Channel, Loss, Plan, Queue, QueueAt, Work};
use polypath_transport::{Config, MtuProbing, Profile};

use crate::draw::{MS, SECOND};
use crate::runner::attempt;
use crate::scenario::{Fate, LAST_CHANGE, Scenario};

/// The smallest plan found that fails as this one does.
pub fn reduce(scenario: Scenario) -> Scenario {
    let Err(why) = attempt(&scenario) else {
        return scenario;
    };
    let kind = kind_of(&why);
    let mut best = scenario;
    loop {
        let smaller = candidates(&best).into_iter().find(|candidate| {
            let outcome = attempt(candidate);
            outcome.is_err_and(|why| kind_of(&why) == kind)
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// A message without its numbers.
fn kind_of(why: &str) -> String {
    why.chars().filter(|each| !each.is_ascii_digit()).collect()
}

/// Every plan that is one step smaller.
fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Plan)| {
        let mut plan = scenario.plan.clone();
        change(&mut plan);
        let changed =
            serde_json::to_string(&plan).ok() != serde_json::to_string(&scenario.plan).ok();
        if changed {
            found.push(Scenario {
                plan,
                fate: scenario.fate,
            });
        }
    };
    let plan = &scenario.plan;
    for index in 1..plan.applications.len() {
        offer(&|plan| {
            plan.applications.remove(index);
        });
    }
    if plan.applications.len() > 1 && has_connection(&plan.applications[1]) {
        offer(&|plan| {
            plan.applications.remove(0);
        });
    }
    for index in 0..plan.events.len() {
        if !decides(scenario, index) {
            offer(&|plan| {
                plan.events.remove(index);
            });
        }
    }
    for link in 0..plan.links.len() {
        for index in 0..plan.links[link].middleboxes.len() {
            offer(&|plan| {
                plan.links[link].middleboxes.remove(index);
            });
        }
        offer(&|plan| {
            let link = &mut plan.links[link];
            (link.forward.wifi, link.backward.wifi) = (None, None);
        });
        for calm in CALM {
            offer(&|plan| calm(&mut plan.links[link].forward));
            offer(&|plan| calm(&mut plan.links[link].backward));
        }
    }
    for (index, application) in plan.applications.iter().enumerate() {
        offer(&|plan| plan.applications[index].client_stack = None);
        offer(&|plan| plan.applications[index].server_stack = None);
        for plain in PLAIN {
            for client in [true, false] {
                offer(&|plan| {
                    let application = &mut plan.applications[index];
                    let own = match client {
                        true => &mut application.client_stack,
                        false => &mut application.server_stack,
                    };
                    own.as_mut()
                        .into_iter()
                        .for_each(|own| plain(&mut own.config));
                });
            }
        }
        let work = halved(&application.work);
        offer(&|plan| plan.applications[index].work = work.clone());
    }
    for node in 0..plan.nodes.len() {
        for plain in PLAIN {
            offer(&|plan| {
                (plan.nodes[node].stack.as_mut())
                    .into_iter()
                    .for_each(|own| plain(&mut own.config))
            });
        }
        for interface in 0..plan.nodes[node].interfaces.len() {
            offer(&|plan| plan.nodes[node].interfaces[interface].backup = false);
        }
    }
    offer(&|plan| plan.record.decisions = false);
    found
}

fn has_connection(application: &Application) -> bool {
    use polypath_lab::plan::Transport;
    matches!(application.transport, Transport::Tcp | Transport::Mptcp)
}

/// Whether the scenario's fate hangs on an event.
fn decides(scenario: &Scenario, index: usize) -> bool {
    let event = &scenario.plan.events[index];
    let of_link = matches!(event.action, Action::Link { .. });
    match scenario.fate {
        Fate::Alive => false,
        Fate::Heals => of_link && event.at_ns >= LAST_CHANGE,
        Fate::Dies(at) => of_link && event.at_ns >= at,
    }
}

const CALM: [fn(&mut Channel); 10] = [
    |channel| channel.loss = Loss::None,
    |channel| channel.jitter_ns = 0,
    |channel| channel.reorder = 0.0,
    |channel| channel.duplicate = 0.0,
    |channel| channel.corrupt = 0.0,
    |channel| channel.burst_bytes = 0,
    |channel| channel.queue = Queue::default(),
    |channel| channel.queue_at = QueueAt::Link,
    |channel| channel.mtu = None,
    |channel| (channel.rate_bps, channel.delay_ns) = (Some(10_000_000), 10 * MS),
];

const PLAIN: [fn(&mut Config); 12] = [
    |config| config.profile = Profile::Rfc,
    |config| config.scheduler = "default".into(),
    |config| config.path_manager = "default".into(),
    |config| config.congestion = "reno".into(),
    |config| config.receive_buffer = [200_000; 3].into(),
    |config| config.send_buffer = [200_000; 3].into(),
    |config| (config.mtu, config.mtu_probing) = (1_500, MtuProbing::Off),
    |config| (config.keepalive, config.user_timeout_ns) = (None, 0),
    |config| (config.nagle, config.cork) = (true, false),
    |config| (config.sack, config.timestamps, config.window_scaling) = (true, true, true),
    |config| (config.ecn, config.checksum, config.autotuning) = (false, false, false),
    |config| {
        config.initial_window = 10;
        (config.rto_min_ns, config.delayed_ack_ns) = (SECOND / 5, 40 * MS);
    },
];

fn halved(work: &Work) -> Work {
    let mut work = work.clone();
    let half = |value: &mut u64| *value = (*value / 2).max(1);
    match &mut work {
        Work::Bulk(bulk) => bulk.size_bytes.iter_mut().for_each(half),
        Work::RequestResponse(requests) => {
            half(&mut requests.count);
            half(&mut requests.request_bytes);
            half(&mut requests.response_bytes);
        }
        Work::Fetch(fetch) => {
            half(&mut fetch.size_bytes);
            half(&mut fetch.count);
        }
        Work::PingPong(ping_pong) => {
            half(&mut ping_pong.bytes);
            ping_pong.count.iter_mut().for_each(half);
        }
        Work::Video(video) => video.segments.iter_mut().for_each(half),
        Work::Stream(stream) => stream.duration_ns.iter_mut().for_each(half),
        Work::Page(_)
        | Work::Relay(_)
        | Work::Tunnel(_)
        | Work::Ping(_)
        | Work::Cbr(_)
        | Work::OnOff(_)
        | Work::Messages(_) => {}
    }
    work
}
