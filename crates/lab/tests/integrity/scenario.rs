//! A random plan, and the outcomes that it allows.

use std::net::IpAddr;

use polypath_lab::plan::{
    Action, Application, Attachment, Bulk, Cbr, Choice, Direction, Event, Fetch, Keepalive, Loss,
    NodeKind, OnOff, Ping, PingPong, Plan, Queue, QueueAt, RequestResponse, Routing, Stack, Stream,
    Streams, Tls, Transport, Video, VideoRule, Work,
};
use polypath_transport::{MtuProbing, Profile, WindowReduction};
use serde_json::Value;

use crate::air;
use crate::draw::{Draw, ENDPOINTS, MS, SECOND, entries};
use crate::network::{Size, later_queue, loss, network, queue, stack};
use crate::over_quic;

/// The last change of a network that stays alive; some heal completely at this time.
pub const LAST_CHANGE: u64 = 30 * SECOND;
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// So many times longer it may take where segments are cut. A segment of 9,000 bytes comes in seventy pieces, and where a queue holds
/// fewer or each may be lost, it never comes whole: without timestamps no round trip can be measured then (RFC 6298 section 3), the
/// timeout stays at its maximum of 120 s, and each moves two or three thousand bytes.
const SPLIT_PATIENCE: u64 = 10;

/// Earlier seeds draw what they did before there was video.
const VIDEO_FIRST: u64 = 1_000_000_000;

/// What becomes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Faults stay within bounds to the end.
    Alive,
    /// From [`LAST_CHANGE`] on nothing is lost any more.
    Heals,
    /// All links go down for good at this time.
    Dies(u64),
}

/// From this number on, of scenarios of TCP and of QUIC alike, there are queues of every kind.
pub const LATER_QUEUES: u64 = 1_000_000_000;

/// The share of networks with many interfaces.
const CROWDED: f64 = 0.02;

pub struct Scenario {
    pub plan: Plan,
    pub fate: Fate,
}

impl Scenario {
    pub fn new(seed: u64) -> Self {
        let draw = &mut Draw::new(seed);
        let fate = match draw.integer(0, 9) {
            0 => Fate::Dies(draw.magnitude(10 * MS, 20 * SECOND)),
            1..=5 => Fate::Heals,
            _ => Fate::Alive,
        };
        let crowded = Draw::of(seed, "crowd").chance(CROWDED);
        let size = if crowded { Size::Crowded } else { Size::Small };
        let mut plan = network(draw, seed, size);
        if crowded {
            mesh(&mut plan);
        }
        plan.applications = (0..draw.pick(&[1, 1, 2, 3]))
            .map(|index| application(draw, &plan, index))
            .collect();
        plan.record.segments = plan
            .applications
            .iter()
            .any(|application| bytes_depend_on_time(&application.work));
        plan.events = events(draw, &plan, fate);
        add_middleboxes(&mut Draw::of(seed, "middleboxes"), &mut plan);
        add_mtus(&mut Draw::of(seed, "mtus"), &mut plan);
        add_limits(&mut Draw::of(seed, "limits"), &mut plan);
        add_searches(&mut Draw::of(seed, "searches"), &mut plan);
        add_classic_recovery(&mut Draw::of(seed, "recovery"), &mut plan);
        add_tls(&mut Draw::of(seed, "tls"), &mut plan);
        add_host_queues(&mut Draw::of(seed, "host queues"), &mut plan);
        if seed >= VIDEO_FIRST {
            add_video(&mut Draw::of(seed, "video"), &mut plan);
        }
        if seed >= over_quic::FIRST {
            over_quic::turn(&mut plan, seed);
        }
        name_endpoints(&mut Draw::of(seed, "endpoints"), &mut plan);
        add_controller(&mut Draw::of(seed, "controller"), &mut plan);
        if seed % over_quic::FIRST >= LATER_QUEUES {
            add_later_queues(&mut Draw::of(seed, "queues"), &mut plan);
        }
        if seed % over_quic::FIRST >= air::FIRST {
            air::add(&mut Draw::of(seed, "wifi"), &mut plan);
        }
        Self { plan, fate }
    }
}

/// The client opens a subflow between each two addresses.
fn mesh(plan: &mut Plan) {
    if let Some(stack) = &mut plan.nodes[CLIENT].stack {
        stack.config.path_manager = Choice {
            name: "fullmesh".into(),
            parameters: Default::default(),
        };
    }
}

/// On half of the hosts with path manager `endpoints`, some addresses are endpoints, each with flags of its own.
fn name_endpoints(draw: &mut Draw, plan: &mut Plan) {
    for node in &mut plan.nodes {
        let addresses = node.interfaces.iter().flat_map(|it| &it.addresses);
        let manager = node.stack.as_mut().map(|it| &mut it.config.path_manager);
        let Some(manager) = manager.filter(|it| it.name == ENDPOINTS && draw.chance(0.5)) else {
            continue;
        };
        let kinds = [
            "",
            "subflow",
            "signal",
            "subflow signal",
            "subflow fullmesh",
            "signal port 10100",
        ];
        let lines: Vec<Value> = addresses
            .filter_map(|address| {
                draw.maybe(0.7, |draw| {
                    format!("{address} {}", draw.pick(&kinds)).into()
                })
            })
            .collect();
        manager.parameters.insert(ENDPOINTS.into(), lines.into());
    }
}

/// In one network of three, middleboxes on some links.
fn add_middleboxes(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.33) {
        return;
    }
    for link in &mut plan.links {
        if draw.chance(0.5) {
            let count = draw.pick(&[1, 1, 2]);
            link.middleboxes = (0..count).map(|_| draw.choice("middlebox")).collect();
        }
    }
    if middleboxes(plan).any(|name| name == "split") {
        plan.duration_ns *= SPLIT_PATIENCE;
    }
}

/// On half of the links without a queue in the host, queues of the later kinds.
fn add_later_queues(draw: &mut Draw, plan: &mut Plan) {
    for link in &mut plan.links {
        for side in [&mut link.forward, &mut link.backward] {
            if side.queue_at.is_link() && draw.chance(0.5) {
                side.queue = later_queue(draw);
            }
        }
    }
}

/// In one network of three, MTUs on some links; not where middleboxes would keep senders from hearing of them, or switches.
fn add_mtus(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.33) || middleboxes(plan).next().is_some() {
        return;
    }
    let tells = |end: Attachment| plan.nodes[end.node].kind != NodeKind::Switch;
    for link in &mut plan.links {
        for (end, side) in [(link.a, &mut link.forward), (link.b, &mut link.backward)] {
            if tells(end) && draw.chance(0.4) {
                side.mtu = Some(draw.pick(&[1280, 1400, 1499, 4000]));
            }
        }
    }
}

/// In one network of eight, a controller that spreads the subflows of each connection; it knows no middleboxes.
fn add_controller(draw: &mut Draw, plan: &mut Plan) {
    if draw.chance(0.125) && middleboxes(plan).next().is_none() {
        plan.routing = Routing::Spread;
    }
}

/// In one network of four, hosts whose own queue is that of the link.
fn add_host_queues(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.25) {
        return;
    }
    let is_host = |end: Attachment| plan.nodes[end.node].kind == NodeKind::Host;
    let stacks = plan.nodes.iter().map(|node| &node.stack);
    let own = plan.applications.iter();
    let own = own.flat_map(|each| [&each.client_stack, &each.server_stack]);
    let mut stacks = stacks.chain(own).flatten();
    let tbf = !stacks.any(|stack| stack.config.profile == Profile::MptcpOrg);
    for link in &mut plan.links {
        for (end, side) in [(link.a, &mut link.forward), (link.b, &mut link.backward)] {
            if is_host(end) && draw.chance(0.7) {
                let tbf = tbf
                    && matches!(side.queue, Queue::DropTail(_))
                    && side.burst_bytes == 0
                    && side.duplicate == 0.0
                    && side.reorder == 0.0;
                side.queue_at = if tbf && draw.chance(0.5) {
                    QueueAt::HostTbf
                } else {
                    QueueAt::HostNetem
                };
            }
        }
    }
}

/// In one network of four, limits to how long hosts put up with a silent peer.
fn add_limits(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.25) {
        return;
    }
    let hosts = plan.nodes.iter_mut().map(|node| &mut node.stack);
    let applications = plan.applications.iter_mut();
    let own = applications.flat_map(|each| [&mut each.client_stack, &mut each.server_stack]);
    for stack in hosts.chain(own).flatten() {
        stack.config.keepalive = draw.maybe(0.5, |draw| Keepalive {
            time: draw.magnitude(SECOND, 60 * SECOND),
            interval: draw.magnitude(100 * MS, 10 * SECOND),
            probes: draw.integer(1, 9) as u32,
        });
        if draw.chance(0.5) {
            stack.config.user_timeout_ns = draw.magnitude(SECOND, 100 * SECOND);
        }
    }
}

/// In one network of three, hosts that look for the path's MTU.
fn add_searches(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.33) {
        return;
    }
    for stack in plan.nodes.iter_mut().filter_map(|node| node.stack.as_mut()) {
        stack.config.mtu_probing = draw
            .maybe(0.8, |draw| {
                draw.pick(&[MtuProbing::BlackHole, MtuProbing::On])
            })
            .unwrap_or_default();
    }
}

fn add_tls(draw: &mut Draw, plan: &mut Plan) {
    for application in &mut plan.applications {
        if let Work::Fetch(fetch) = &mut application.work {
            fetch.tls = draw.pick(&[None, Some(Tls::V12), Some(Tls::V13)]);
        }
    }
}

/// Of files that are fetched in the open, one in three is a video that is never ahead of its buffer.
fn add_video(draw: &mut Draw, plan: &mut Plan) {
    for application in &mut plan.applications {
        let Work::Fetch(Fetch {
            size_bytes,
            count,
            tls: None,
            ..
        }) = application.work
        else {
            continue;
        };
        if !draw.chance(0.33) {
            continue;
        }
        let segment_ns = draw.magnitude(100 * MS, 10 * SECOND);
        let rate = |bytes: u64| {
            (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(segment_ns)) as u64
        };
        let highest = rate(size_bytes).max(4);
        application.work = Work::Video(Video {
            segment_ns,
            segments: Some(count),
            rates_bps: vec![highest / 4, highest / 2, highest],
            buffer_ns: segment_ns * count,
            startup_ns: segment_ns * draw.integer(1, 3),
            rule: match draw.integer(0, 2) {
                0 => VideoRule::Throughput {
                    window: draw.integer(1, 10) as u32,
                    safety: 0.9,
                },
                1 => VideoRule::Buffer {
                    reservoir_ns: segment_ns,
                    cushion_ns: 2 * segment_ns,
                },
                _ => VideoRule::Fixed { representation: 1 },
            },
        });
    }
}

/// In one network of three, hosts whose windows shrink at once in loss recovery.
fn add_classic_recovery(draw: &mut Draw, plan: &mut Plan) {
    if !draw.chance(0.33) {
        return;
    }
    for stack in plan.nodes.iter_mut().filter_map(|node| node.stack.as_mut()) {
        let classic = draw.maybe(0.6, |_| WindowReduction::AtOnce);
        stack.config.recovery = classic.unwrap_or_default();
    }
}

/// How long the peer must have been silent at least before a side gives an established connection up for a limit of its own.
pub fn limit(stack: &Stack) -> Option<u64> {
    let timeout = Some(stack.config.user_timeout_ns).filter(|limit| *limit > 0);
    let probed = stack.config.keepalive.map(|keepalive| {
        let all = keepalive.interval * u64::from(keepalive.probes);
        // A user timeout ends the probing early, but not before the first probe had its time.
        keepalive.time + timeout.map_or(all, |_| keepalive.interval.min(all))
    });
    timeout.into_iter().chain(probed).min()
}

/// Whether what is written depends on the course of the run.
pub fn bytes_depend_on_time(work: &Work) -> bool {
    matches!(
        work,
        Work::Bulk(Bulk {
            duration_ns: Some(_),
            ..
        }) | Work::Stream(_)
    )
}

fn application(draw: &mut Draw, plan: &Plan, index: usize) -> Application {
    let work = work(draw, index);
    let transport = match work {
        Work::Ping(_) => Transport::Icmp,
        Work::Cbr(_) | Work::OnOff(_) => Transport::Udp,
        _ => draw.pick(&[Transport::Tcp, Transport::Mptcp, Transport::Mptcp]),
    };
    let (source, destination) = match draw.chance(0.5) {
        true => (None, None),
        false => ends(draw, plan),
    };
    let small_mtu = plan
        .nodes
        .iter()
        .flat_map(|node| &node.interfaces)
        .flat_map(|interface| &interface.addresses)
        .all(IpAddr::is_ipv4);
    Application {
        name: format!("application{index}"),
        client: CLIENT,
        server: SERVER,
        transport,
        source,
        destination,
        port: 5_001 + index as u16,
        start_ns: draw.pick(&[0, 0, 1_234 * MS]),
        client_stack: draw.maybe(0.2, |draw| Box::new(stack(draw, small_mtu))),
        program: None,
        group: None,
        server_stack: draw.maybe(0.2, |draw| Box::new(stack(draw, small_mtu))),
        work,
    }
}

/// Two addresses of one family with a way between them.
fn ends(draw: &mut Draw, plan: &Plan) -> (Option<IpAddr>, Option<IpAddr>) {
    let (client, server) = (&plan.nodes[CLIENT], &plan.nodes[SERVER]);
    let from = draw.integer(0, client.interfaces.len() as u64 - 1) as usize;
    let source = draw.pick(&client.interfaces[from].addresses);
    let direct = plan.links[from].b.node == SERVER;
    let to = match direct {
        true => from,
        false => draw.integer(0, server.interfaces.len() as u64 - 1) as usize,
    };
    let destination = server.interfaces[to]
        .addresses
        .iter()
        .find(|address| address.is_ipv4() == source.is_ipv4())
        .copied();
    (Some(source), destination)
}

/// A kind of work from the registry; the first application always has a connection.
fn work(draw: &mut Draw, index: usize) -> Work {
    let kinds: Vec<String> = entries("application")
        .iter()
        .filter_map(|entry| entry["name"].as_str().map(str::to_owned))
        // Messages go over QUIC alone, and this draws TCP; a video takes the place of a fetch; a page and a chain of relays have several connections;
        // tests/tunnels.rs draws tunnels.
        .filter(|name| !["messages", "video", "page", "relay", "tunnel"].contains(&&**name))
        .filter(|name| index > 0 || !["ping", "cbr", "on-off"].contains(&name.as_str()))
        .collect();
    let reverse = draw.chance(0.5);
    match draw.pick(&kinds).as_str() {
        "bulk" => {
            let timed = draw.chance(0.2);
            Work::Bulk(Bulk {
                duration_ns: timed.then(|| draw.magnitude(20 * MS, 3 * SECOND)),
                size_bytes: match timed {
                    true => draw.maybe(0.5, |draw| draw.magnitude(1, 300_000)),
                    false => Some(draw.pick(&[0, 1, 0xffff]).max(draw.magnitude(1, 300_000))),
                },
                reverse,
                reverse_bytes: None,
                abort: false,
                first_bytes: 0,
                pause_ns: 0,
            })
        }
        "stream" => Work::Stream(Stream {
            rate_bps: draw.magnitude(20_000, 2_000_000),
            block_bytes: draw.magnitude(100, 20_000),
            duration_ns: Some(draw.magnitude(20 * MS, 8 * SECOND)),
            reverse,
        }),
        "request-response" => Work::RequestResponse(RequestResponse {
            count: draw.integer(1, 10),
            interval_ns: draw.pick(&[0, 100 * MS, 2 * SECOND]),
            request_bytes: draw.magnitude(1, 20_000),
            response_bytes: draw.magnitude(1, 40_000),
            think_ns: draw.pick(&[0, 0, 5 * MS, 300 * MS]),
        }),
        "fetch" => Work::Fetch(Fetch {
            size_bytes: draw.magnitude(1, 150_000) - 1,
            count: draw.integer(1, 4),
            tls: None,
            parallel: 1,
            streams: Streams::Each,
        }),
        "ping-pong" => {
            let timed = draw.chance(0.3);
            Work::PingPong(PingPong {
                bytes: draw.magnitude(1, 10_000),
                count: Some(draw.integer(1, 20)),
                duration_ns: timed.then(|| draw.magnitude(10 * MS, 4 * SECOND)),
            })
        }
        "ping" => Work::Ping(Ping {
            interval_ns: draw.magnitude(10 * MS, SECOND),
            payload_bytes: draw.integer(0, 1_400),
            count: Some(draw.integer(1, 50)),
            duration_ns: None,
        }),
        "cbr" => Work::Cbr(Cbr {
            rate_bps: draw.magnitude(20_000, 5_000_000),
            packet_bytes: draw.integer(1, 1_400),
            duration_ns: draw.magnitude(10 * MS, 2 * SECOND),
        }),
        "on-off" => Work::OnOff(OnOff {
            rate_bps: draw.magnitude(20_000, 5_000_000),
            packet_bytes: draw.integer(100, 1_400),
            on_ns: draw.magnitude(10 * MS, SECOND),
            off_ns: draw.magnitude(10 * MS, SECOND),
            duration_ns: draw.magnitude(10 * MS, 4 * SECOND),
        }),
        name => panic!("applications of kind {name} are not drawn yet"),
    }
}

fn events(draw: &mut Draw, plan: &Plan, fate: Fate) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..draw.pick(&[0, 0, 1, 2, 4]) {
        let (begin, end) = span(draw);
        let link = draw.integer(0, plan.links.len() as u64 - 1) as usize;
        match draw.integer(0, 5) {
            0 | 1 => {
                let direction =
                    draw.pick(&[Direction::Both, Direction::Forward, Direction::Backward]);
                events.push(up(begin, link, direction, false));
                events.push(up(end, link, direction, true));
            }
            2 => {
                let node = draw.pick(&[CLIENT, SERVER]);
                let interface =
                    draw.integer(0, plan.nodes[node].interfaces.len() as u64 - 1) as usize;
                for (at_ns, up) in [(begin, false), (end, true)] {
                    let action = Action::Interface {
                        node,
                        interface,
                        up,
                    };
                    events.push(Event { at_ns, action });
                }
            }
            3 => {
                let node = draw.pick(&[CLIENT, SERVER]);
                let interface =
                    draw.integer(0, plan.nodes[node].interfaces.len() as u64 - 1) as usize;
                for (at_ns, backup) in [(begin, true), (end, draw.chance(0.3))] {
                    let action = Action::Priority {
                        node,
                        interface,
                        backup,
                    };
                    events.push(Event { at_ns, action });
                }
            }
            _ => {
                let action = Action::Link {
                    link,
                    direction: draw.pick(&[
                        Direction::Both,
                        Direction::Forward,
                        Direction::Backward,
                    ]),
                    rate_bps: draw.maybe(0.5, |draw| draw.magnitude(500_000, 100_000_000)),
                    delay_ns: draw.maybe(0.5, |draw| draw.magnitude(MS / 2, 200 * MS)),
                    loss: draw.maybe(0.3, loss),
                    queue: draw.maybe(0.3, queue),
                    up: None,
                };
                events.push(Event {
                    at_ns: begin,
                    action,
                });
            }
        }
    }
    for link in 0..plan.links.len() {
        match fate {
            Fate::Alive => {}
            Fate::Heals => events.push(Event {
                at_ns: LAST_CHANGE,
                action: Action::Link {
                    link,
                    direction: Direction::Both,
                    rate_bps: None,
                    delay_ns: None,
                    loss: Some(Loss::None),
                    queue: Some(Queue::default()),
                    up: Some(true),
                },
            }),
            Fate::Dies(at) => {
                events.push(up(at, link, Direction::Both, false));
            }
        }
    }
    if let Fate::Dies(at) = fate {
        events.retain(|event| event.at_ns <= at || !raises(&event.action));
    }
    events.sort_by_key(|event| event.at_ns);
    events
}

fn raises(action: &Action) -> bool {
    matches!(
        action,
        Action::Link { up: Some(true), .. } | Action::Interface { up: true, .. }
    )
}

fn up(at_ns: u64, link: usize, direction: Direction, up: bool) -> Event {
    Event {
        at_ns,
        action: Action::Link {
            link,
            direction,
            rate_bps: None,
            delay_ns: None,
            loss: None,
            queue: None,
            up: Some(up),
        },
    }
}

/// When something begins and ends. While connections are set up it is short: half of the SYNs are to be left.
fn span(draw: &mut Draw) -> (u64, u64) {
    let begin = draw.magnitude(MS, 20 * SECOND);
    let most = if begin < 5 * SECOND {
        3 * SECOND
    } else {
        LAST_CHANGE - SECOND - begin
    };
    (begin, begin + draw.magnitude(MS, most))
}

/// What a host's `side` of an application is set to.
pub fn stack_of<'a>(plan: &'a Plan, application: &'a Application, node: usize) -> &'a Stack {
    let own = match node {
        CLIENT => &application.client_stack,
        _ => &application.server_stack,
    };
    own.as_ref()
        .or(plan.nodes[node].stack.as_ref())
        .expect("hosts have stacks")
}

/// The middleboxes of a plan by name.
pub fn middleboxes(plan: &Plan) -> impl Iterator<Item = &str> {
    let boxes = plan.links.iter().flat_map(|link| &link.middleboxes);
    boxes.map(|choice| &*choice.name)
}

/// Names of what a scenario is made of, for the test that all of the registries take part.
pub fn names(choice: impl Fn(&Stack) -> &Choice, plan: &Plan) -> Vec<String> {
    plan.applications
        .iter()
        .flat_map(|application| {
            [CLIENT, SERVER].map(|node| choice(stack_of(plan, application, node)).name.clone())
        })
        .collect()
}
