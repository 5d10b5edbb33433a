//! From a plan to a network and to transport settings.

mod layout;
mod shared;
mod wifi;

use std::ops::Range;
use std::sync::Arc;

use polypath_net::{Change, ChannelConfig, ChannelId, EqualPaths, Network, Trace, TraceError};
use polypath_transport::{AckFrequency, Algorithms, Config, MILLISECOND, Profile};

use crate::PlanError;
use crate::other_stack::OtherStack;
use crate::plan::{self, Action, Direction, Plan};
use crate::written::{self, Elsewhere};
pub(crate) use layout::Layout;
pub(crate) use shared::SharedConfigs;

/// The network of a plan, and the channels of its links. `B` is what its packets carry.
pub struct Built<B> {
    pub network: Network<B>,
    /// By link: forward, backward.
    pub channels: Vec<(ChannelId, ChannelId)>,
}

/// Makes the network of a plan, its changes to links and interfaces scheduled. Interfaces are numbered node by node.
///
/// # Errors
/// What the plan says that no network can be.
pub fn build<B: Clone>(plan: &Plan) -> Result<Built<B>, PlanError> {
    let mut layout = Layout::default();
    for node in &plan.nodes {
        let interfaces = node.interfaces.iter();
        let interfaces = interfaces.map(|own| (&*own.name, &*own.addresses));
        layout.node(&node.name, node.kind, node.forwards, interfaces)?;
    }
    let mut channels = Vec::new();
    for link in &plan.links {
        let place = format!("link {}", link.name);
        let [forward, backward] = [&link.forward, &link.backward].map(|side| {
            let config = channel(side).map_err(|error| PlanError::Channel {
                place: place.clone(),
                error: error.into(),
            })?;
            over_the_air(config, side, plan).map_err(|why| PlanError::invalid(&*place, why))
        });
        channels.push(layout.link(&link.name, (link.a, link.b), forward?, backward?)?);
        for (end, side) in [(link.a, &link.forward), (link.b, &link.backward)] {
            let node = &plan.nodes[end.node];
            if !side.queue_at.is_link() && node.kind != plan::NodeKind::Host {
                let why = format!(
                    "the link has its queue in the sending host, but {} is not a host",
                    node.name
                );
                return Err(PlanError::invalid(&*place, why));
            }
            if side.queue_at == plan::QueueAt::HostTbf {
                check_tbf(plan, side).map_err(|why| PlanError::invalid(&*place, why))?;
            }
        }
    }
    for route in &plan.routes {
        layout.route(route)?;
    }
    let mut topology = layout.finish();
    topology.set_equal_paths(match plan.routing {
        plan::Routing::ShortestPath | plan::Routing::Spread => EqualPaths::LeastDelay,
        plan::Routing::Ecmp => EqualPaths::Ecmp { seed: plan.seed },
        plan::Routing::InTurn => EqualPaths::InTurn,
    });
    let mut network = Network::new(topology, plan.seed);
    for (index, event) in plan.events.iter().enumerate() {
        let place = format!("event {index}");
        for (channel, change) in changes(plan, &channels, &place, &event.action)? {
            let scheduled = network.schedule(event.at_ns, channel, change);
            scheduled.map_err(|error| PlanError::Change {
                place: place.clone(),
                error,
            })?;
        }
    }
    Ok(Built { network, channels })
}

/// The changes of links that an action means, once what it names was found; what hosts are told is not among them.
pub(crate) fn changes(
    plan: &Plan,
    channels: &[(ChannelId, ChannelId)],
    place: &str,
    action: &Action,
) -> Result<Vec<(ChannelId, Change)>, PlanError> {
    let interfaces = |node: usize| {
        let found = plan.nodes.get(node).map(|node| &node.interfaces);
        found.ok_or_else(|| PlanError::missing(place, "node", node))
    };
    let require = |node: usize, interface: usize| match interfaces(node)?.get(interface) {
        Some(_) => Ok(()),
        None => Err(PlanError::missing(place, "interface", interface)),
    };
    match action {
        Action::Link {
            link,
            direction,
            rate_bps,
            delay_ns,
            loss,
            queue: discipline,
            up,
        } => {
            let &(forward, backward) = channels
                .get(*link)
                .ok_or_else(|| PlanError::missing(place, "link", *link))?;
            let change = Change {
                rate: *rate_bps,
                delay: *delay_ns,
                loss: loss.clone(),
                queue: discipline.clone(),
                up: *up,
                ..Change::default()
            };
            return Ok(match direction {
                Direction::Forward => vec![(forward, change)],
                Direction::Backward => vec![(backward, change)],
                Direction::Both => vec![(forward, change.clone()), (backward, change)],
            });
        }
        Action::Interface {
            node,
            interface,
            up,
        } => {
            require(*node, *interface)?;
            let is = |end: plan::Attachment| (end.node, end.interface) == (*node, *interface);
            let mut links = plan.links.iter().zip(channels);
            let out_and_in = links.find_map(|(link, &(forward, backward))| {
                let back = is(link.b).then_some((backward, forward));
                is(link.a).then_some((forward, backward)).or(back)
            });
            let sender = Change {
                sender_up: Some(*up),
                ..Change::default()
            };
            let receiver = Change {
                receiver_up: Some(*up),
                ..Change::default()
            };
            return Ok(out_and_in.map_or_else(Vec::new, |(out, into)| {
                vec![(out, sender), (into, receiver)]
            }));
        }
        Action::Flush { node } => drop(interfaces(*node)?),
        Action::Priority {
            node, interface, ..
        }
        | Action::FullMesh {
            node, interface, ..
        }
        | Action::Endpoint {
            node, interface, ..
        } => require(*node, *interface)?,
        Action::Migrate {
            node,
            interface,
            to,
        } => {
            require(*node, *interface)?;
            require(*node, *to)?;
        }
    }
    Ok(Vec::new())
}

/// tbf in a host: it must be known as a packet enters the queue when it leaves. The mptcp.org scheduler asks which subflows are held back,
/// which is not followed (`mptcp_is_temp_unavailable`).
fn check_tbf(plan: &Plan, channel: &plan::Channel) -> Result<(), String> {
    let known = matches!(channel.queue, plan::Queue::DropTail(_))
        && channel.trace.is_none()
        && channel.burst_bytes == 0
        && channel.duplicate == 0.0
        && channel.reorder == 0.0;
    if !known {
        let why = "tbf in a host is drop-tail without trace, burst, duplicates and reordering";
        return Err(why.to_owned());
    }
    let own = plan.applications.iter();
    let own = own.flat_map(|each| [&each.client_stack, &each.server_stack]);
    let hosts = plan.nodes.iter().map(|node| &node.stack);
    let mut stacks = hosts.chain(own).flatten();
    if stacks.any(|stack| stack.config.profile == Profile::MptcpOrg) {
        return Err("tbf in a host is followed in the profiles 'linux' and 'rfc' only".to_owned());
    }
    Ok(())
}

fn over_the_air(
    channel: ChannelConfig,
    side: &plan::Channel,
    plan: &Plan,
) -> Result<ChannelConfig, String> {
    let Some(wifi) = &side.wifi else {
        return Ok(channel);
    };
    Ok(ChannelConfig {
        // What a plan has beside it is the mean.
        rate_bps: None,
        wifi: Some(Arc::new(wifi::config(wifi, &plan.media)?)),
        ..channel
    })
}

fn channel(channel: &plan::Channel) -> Result<ChannelConfig, TraceError> {
    let trace = match &channel.trace {
        Some(trace) => Some(Arc::new(Trace::from_gaps(&trace.gaps_ms)?)),
        None => None,
    };
    let mean = trace
        .as_ref()
        .map(|trace| trace.mean_rate_bps(channel.overhead_bytes));
    Ok(ChannelConfig {
        rate_bps: channel.rate_bps.or(mean),
        trace,
        wifi: None,
        delay: channel.delay_ns,
        overhead: channel.overhead_bytes,
        burst: channel.burst_bytes,
        queue: channel.queue.clone(),
        bypass: channel.bypass_bytes,
        of_sender: !channel.queue_at.is_link(),
        tells_leaving: channel.queue_at == plan::QueueAt::HostTbf,
        loss: channel.loss.clone(),
        jitter: channel.jitter_ns,
        reorder: channel.reorder,
        duplicate: channel.duplicate,
        corrupt: channel.corrupt,
        mtu: channel.mtu,
        up: channel.up,
        sender_up: true,
        receiver_up: true,
    })
}

/// The transport settings of a stack.
fn config(
    stack: &plan::Stack,
    multipath: bool,
    place: &str,
    algorithms: &Algorithms,
) -> Result<Arc<Config>, PlanError> {
    check_ack_frequency(stack.config.ack_frequency.as_ref(), place)?;
    let config = Config {
        multipath,
        ..stack.config.clone()
    };
    algorithms
        .check(&config)
        .map_err(|error| PlanError::Stack {
            place: place.into(),
            error,
        })?;
    Ok(Arc::new(config))
}

/// What a stack by others is made from; in a build without it, nothing.
type Make = fn(&Config, plan::Transport, bool) -> Result<Arc<dyn OtherStack>, String>;

/// Stacks by others, by name.
const OTHER_STACKS: &[(&str, Option<Make>)] = &[(
    "noq",
    #[cfg(feature = "noq")]
    Some(crate::noq::make),
    #[cfg(not(feature = "noq"))]
    None,
)];

/// Bounds of a delay of acknowledgements that is asked for: what both stacks offer, and what the draft admits.
const ACK_DELAYS_NS: Range<u64> = MILLISECOND..(1 << 14) * MILLISECOND;

/// Whether a stack can ask that of its peers' acknowledgements.
fn check_ack_frequency(asked: Option<&AckFrequency>, place: &str) -> Result<(), PlanError> {
    let invalid = |problem: &str| Err(PlanError::invalid(place, problem));
    let Some(asked) = asked else {
        return Ok(());
    };
    if asked.packets == 0 {
        return invalid("packets of ack_frequency must be at least 1");
    }
    let within = |delay| ACK_DELAYS_NS.contains(&delay);
    if !asked.max_delay.is_none_or(within) {
        return invalid("max_delay_ns of ack_frequency must be at least 1 ms and below 16384 ms");
    }
    Ok(())
}

/// What makes a stack by others.
///
/// # Errors
/// There is none of that name, or not in this build.
fn maker(stacks: &[(&str, Option<Make>)], name: &str) -> Result<Make, String> {
    match stacks.iter().find(|(known, _)| *known == name) {
        Some((_, Some(make))) => Ok(*make),
        Some((_, None)) => Err(format!(
            "this build lacks {name}; build polypath-lab with its feature '{name}'"
        )),
        None => Err(format!(
            "stack must be polypath, noq or one that is written elsewhere, not \"{name}\""
        )),
    }
}

/// What makes the connections of an end whose stack is another one; nothing for Polypath's own.
pub(crate) fn other_stack(
    stack: &plan::Stack,
    transport: plan::Transport,
    ipv6: bool,
    place: &str,
    elsewhere: Option<&dyn Elsewhere>,
) -> Result<Option<Arc<dyn OtherStack>>, PlanError> {
    let name = match stack.stack.as_deref() {
        None | Some("polypath") => return Ok(None),
        Some(name) => name,
    };
    written::make(elsewhere, name, &stack.config, transport, ipv6)
        .unwrap_or_else(|| {
            let make = maker(OTHER_STACKS, name)?;
            make(&stack.config, transport, ipv6)
        })
        .map(Some)
        .map_err(|problem| PlanError::invalid(place, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_is_not_built_in_says_how_to_have_it() {
        let told = |name: &str| maker(&[("noq", None)], name).err();
        assert_eq!(
            told("noq").as_deref(),
            Some("this build lacks noq; build polypath-lab with its feature 'noq'")
        );
        assert_eq!(
            told("quiche").as_deref(),
            Some("stack must be polypath, noq or one that is written elsewhere, not \"quiche\"")
        );
        assert!(maker(OTHER_STACKS, "noq").is_ok() == cfg!(feature = "noq"));
    }
}
