//! The stacks of the endpoints: any profile, congestion control and scheduler, and settings that affect answers and
//! state.

use polypath_settings::Registry;
use polypath_transport::{
    AckFrequency, AckPath, Buffer, Choice, Config, ControlPath, MILLISECOND as MS, MtuProbing,
    Profile, WindowReduction, congestion, path_manager, scheduler,
};
use rand::Rng;

use crate::choices::Choices;

/// Largest buffers of the hosts here.
pub const BUFFER: u64 = 65_536;

pub fn pick<T: Copy>(rng: &mut Choices, among: &[T]) -> T {
    among[rng.random_range(0..among.len())]
}

fn entry<T: ?Sized>(rng: &mut Choices, registry: &Registry<T>) -> Choice {
    let names: Vec<_> = registry.names().collect();
    pick(rng, &names).into()
}

fn buffer() -> Buffer {
    Buffer {
        minimum: 4_096,
        default: 16_384,
        maximum: BUFFER,
    }
}

/// An end of TCP or MPTCP; what is not drawn is as in `base`.
pub fn drawn(rng: &mut Choices, base: Config) -> Config {
    Config {
        profile: pick(rng, &Profile::ALL),
        congestion: entry(rng, &congestion::REGISTRY),
        scheduler: entry(rng, &scheduler::REGISTRY),
        sack: rng.random_ratio(3, 4),
        timestamps: rng.random(),
        ecn: rng.random(),
        window_scaling: rng.random_ratio(3, 4),
        receive_buffer: buffer(),
        send_buffer: buffer(),
        autotuning: rng.random(),
        initial_window: pick(rng, &[1, 2, 10, 40]),
        nagle: rng.random(),
        delayed_ack_ns: pick(rng, &[0, 1, 40, 200]) * MS,
        recovery: pick(
            rng,
            &[WindowReduction::Proportional, WindowReduction::AtOnce],
        ),
        mtu_probing: pick(
            rng,
            &[MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::On],
        ),
        ..base
    }
}

/// Schedulers that hold data back until the path that carried least takes some.
const LEVEL: &[&str] = &["balanced", "equal"];
/// Those that do so for a path that would be the faster one.
const WAITING: &[&str] = &["blest", "ecf", "sttf"];

fn without(rng: &mut Choices, base: Config, schedulers: &[&[&str]]) -> Config {
    let mut made = drawn(rng, base);
    let among = |name: &str| schedulers.iter().any(|some| some.contains(&name));
    while among(&made.scheduler.name) {
        made.scheduler = entry(rng, &scheduler::REGISTRY);
    }
    made
}

/// As [`drawn`], but no path has to keep level with another one.
pub fn unlevelled(rng: &mut Choices, base: Config) -> Config {
    without(rng, base, &[LEVEL])
}

/// As [`drawn`], but no path has to wait for another one.
pub fn unheld(rng: &mut Choices, base: Config) -> Config {
    without(rng, base, &[LEVEL, WAITING])
}

/// As [`drawn`], which opens and announces subflows as any path manager does.
pub fn managed(rng: &mut Choices, base: Config) -> Config {
    Config {
        path_manager: entry(rng, &path_manager::REGISTRY),
        ..drawn(rng, base)
    }
}

/// An end of QUIC or Multipath QUIC.
pub fn drawn_quic(rng: &mut Choices) -> Config {
    let scheduler = loop {
        let drawn = entry(rng, &scheduler::REGISTRY);
        let made = scheduler::REGISTRY.make(&drawn.name, &drawn.parameters);
        if !made.expect("an entry").fills_queues() {
            break drawn;
        }
    };
    let ack_frequency = rng.random::<bool>().then(|| AckFrequency {
        packets: rng.random_range(1..40),
        max_delay: rng.random::<bool>().then(|| rng.random_range(1..200) * MS),
        reordering: rng.random_range(0..7),
    });
    Config {
        congestion: entry(rng, &congestion::REGISTRY),
        scheduler,
        ecn: rng.random(),
        initial_window: pick(rng, &[1, 2, 10, 40]),
        ack_path: pick(rng, &[AckPath::Same, AckPath::Fastest, AckPath::Scheduler]),
        control_path: pick(rng, &[ControlPath::Fastest, ControlPath::Scheduler]),
        retry: rng.random_ratio(1, 4),
        ack_frequency,
        resumption: rng.random(),
        careful_resume: rng.random(),
        ..Config::default()
    }
}
