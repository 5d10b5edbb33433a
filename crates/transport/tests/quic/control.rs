//! Packets without data, shown to the scheduler if the host wants that.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use polypath_settings::RegistryError;
use polypath_transport::congestion::CongestionControl;
use polypath_transport::path_manager::PathManager;
use polypath_transport::quic::Transmit;
use polypath_transport::scheduler::{Carried, Decision, PacketKind, Scheduler, View};
use polypath_transport::{
    AckPath, Algorithms, Buffer, Choice, Config, ControlPath, Foreign, MILLISECOND as MS, Nanos,
    SECOND,
};
use polypath_wire::quic::Frame;

use crate::pair::{Pair, Settings, Side};
use crate::{MBPS, link, multipath};

/// Places packets without data on the last path, and data on the first, and notes what it was asked about and what was carried.
#[derive(Clone, Debug, Default)]
struct Chooser {
    asked: Arc<Mutex<Vec<PacketKind>>>,
    carried: Arc<Mutex<Vec<(usize, u32)>>>,
    waits: bool,
}

impl Scheduler for Chooser {
    fn select(&mut self, view: &View) -> Decision {
        self.asked.lock().expect("one thread").push(view.kind);
        match view.kind {
            PacketKind::Data => Decision::Send(0),
            _ if self.waits => Decision::Wait,
            _ => Decision::Send(view.paths.len() - 1),
        }
    }

    fn carried(&mut self, what: Carried) {
        let told = (what.path, what.bytes);
        self.carried.lock().expect("one thread").push(told);
    }
}

/// Lets data go only at the moment at which it was asked about a control packet.
#[derive(Clone, Debug, Default)]
struct Together {
    placed_at: Option<Nanos>,
}

impl Scheduler for Together {
    fn select(&mut self, view: &View) -> Decision {
        if view.kind == PacketKind::Control {
            self.placed_at = Some(view.now);
        }
        match self.placed_at == Some(view.now) {
            true => Decision::Send(0),
            false => Decision::Wait,
        }
    }
}

/// Hands out copies of a scheduler.
#[derive(Debug)]
struct Given<S>(S);

impl<S: Scheduler + Clone + Debug + Sync + 'static> Foreign for Given<S> {
    fn congestion(&self, _: &Choice) -> Option<Result<Box<dyn CongestionControl>, RegistryError>> {
        None
    }

    fn scheduler(&self, _: &Choice) -> Option<Result<Box<dyn Scheduler>, RegistryError>> {
        Some(Ok(Box::new(self.0.clone())))
    }

    fn path_manager(&self, _: &Choice) -> Option<Result<Box<dyn PathManager>, RegistryError>> {
        None
    }
}

fn is_control(frame: &Frame) -> bool {
    !matches!(
        frame,
        Frame::Stream { .. } | Frame::Ack(_) | Frame::Ping | Frame::Padding(_)
    )
}

/// A download of 1 MB through a window of 200 kB, and an upload beside it: the client's packets, with the link that each left on.
fn exchange(client: Settings, upload: u64) -> Vec<(usize, Transmit)> {
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 30 * MS)];
    let window = Buffer::from([200_000; 3]);
    let config = Config {
        receive_buffer: window,
        autotuning: false,
        ..client.config
    };
    let client = Settings { config, ..client };
    let mut pair = Pair::new(client, &multipath(), links, 1);
    pair.establish();
    pair.run_until(SECOND, |_| false);
    let (now, before) = (pair.now, pair.sent.len());
    let server = pair.server_mut();
    server.write(1_000_000, now);
    pair.client.write(upload, now);
    let whole = [1_000_000, upload];
    pair.run_until(20 * SECOND, |pair| pair.read == whole);
    assert_eq!(pair.read, whole);
    let sent = pair.sent.drain(before..);
    sent.filter(|(_, side, _, _)| *side == Side::Client)
        .map(|(_, _, link, transmit)| (link, transmit))
        .collect()
}

/// The client's packets during a download: on which link those left that hold control frames, and the others.
fn download(client: Settings) -> ([usize; 2], [usize; 2]) {
    let (mut control, mut others) = ([0; 2], [0; 2]);
    for (link, transmit) in exchange(client, 0) {
        let mut frames = (transmit.datagram.packets.iter()).flat_map(|packet| &packet.frames);
        let count = match frames.any(is_control) {
            true => &mut control,
            false => &mut others,
        };
        count[link] += 1;
    }
    (control, others)
}

fn with<S>(scheduler: &S, control_path: ControlPath, ack_path: AckPath) -> Settings
where
    S: Scheduler + Clone + Debug + Sync + 'static,
{
    Settings {
        config: Config {
            control_path,
            ack_path,
            ..multipath()
        },
        algorithms: Algorithms::with(Arc::new(Given(scheduler.clone()))),
    }
}

#[test]
fn control_packets_take_the_fastest_path_unasked() {
    let chooser = Chooser::default();
    let (control, _) = download(with(&chooser, ControlPath::Fastest, AckPath::Same));
    assert!(control[0] > 20 && control[1] == 0, "{control:?}");
    assert!(chooser.asked.lock().expect("one thread").is_empty());
}

#[test]
fn control_packets_go_where_the_scheduler_wants_them() {
    let chooser = Chooser::default();
    let (control, others) = download(with(&chooser, ControlPath::Scheduler, AckPath::Same));
    assert!(control[1] > 20 && control[0] == 0, "{control:?}");
    assert!(
        others[0] > 50,
        "acknowledgements stay on their paths: {others:?}"
    );
    let asked = chooser.asked.lock().expect("one thread");
    assert!(asked.iter().all(|kind| *kind == PacketKind::Control));
    let carried = chooser.carried.lock().expect("one thread");
    assert_eq!(carried.len(), asked.len());
    assert!(carried.iter().filter(|told| **told == (1, 0)).count() >= control[1]);
}

#[test]
fn acknowledgements_and_control_packets_are_told_apart() {
    let chooser = Chooser::default();
    let (control, others) = download(with(&chooser, ControlPath::Scheduler, AckPath::Scheduler));
    assert_eq!((control[0], others[0]), (0, 0));
    let asked = chooser.asked.lock().expect("one thread");
    for kind in [PacketKind::Acknowledgement, PacketKind::Control] {
        assert!(asked.contains(&kind), "{kind:?}");
    }
}

#[test]
fn a_scheduler_that_waits_leaves_control_packets_to_the_fastest_path() {
    let chooser = Chooser {
        waits: true,
        ..Chooser::default()
    };
    let (control, _) = download(with(&chooser, ControlPath::Scheduler, AckPath::Same));
    assert!(control[0] > 20 && control[1] == 0, "{control:?}");
    assert!(!chooser.asked.lock().expect("one thread").is_empty());
}

#[test]
fn a_scheduler_is_told_of_no_control_packet_that_it_was_not_asked_about() {
    let chooser = Chooser::default();
    let server = with(&chooser, ControlPath::Scheduler, AckPath::Same);
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 30 * MS)];
    let mut pair = Pair::new(&multipath(), server, links, 1);
    pair.establish();
    pair.run_until(SECOND, |_| false);
    let asked = chooser.asked.lock().expect("one thread").len();
    let carried = chooser.carried.lock().expect("one thread").len();
    // The server's first control frames leave before any path is open, and no scheduler has a say in that.
    let unasked = |(_, side, _, transmit): &(_, Side, _, Transmit)| {
        let mut frames = (transmit.datagram.packets.iter()).flat_map(|packet| &packet.frames);
        *side == Side::Server && frames.any(|frame| matches!(frame, Frame::NewConnectionId(_)))
    };
    assert!(pair.sent.iter().any(unasked));
    assert_eq!((carried, asked), (asked, asked));
}

#[test]
fn data_that_waited_for_a_control_packet_leaves_with_it() {
    let client = with(&Together::default(), ControlPath::Scheduler, AckPath::Same);
    exchange(client, 10_000);
}
