//! Values of noq's congestion controls that its statistics do not report.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// What a path's controller was told, in bytes of packets that elicit acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    in_flight: AtomicU64,
    acknowledged: AtomicU64,
}

impl Tally {
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Relaxed)
    }
}

/// Makes the controllers of noq, each with a count of what it is told.
pub(crate) struct Factory(pub Arc<dyn ControllerFactory + Send + Sync>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Metered {
            tally: Arc::default(),
            inner: Arc::clone(&self.0).build(now, mtu),
        })
    }
}

/// The count of a controller that a [`Factory`] made.
pub(crate) fn tally(controller: &dyn Controller) -> Option<Arc<Tally>> {
    let own = controller.clone_box().into_any();
    Some(own.downcast::<Metered>().ok()?.tally)
}

/// Decides nothing: every call goes on to noq's controller.
#[derive(Debug)]
struct Metered {
    tally: Arc<Tally>,
    inner: Box<dyn Controller>,
}

impl Metered {
    fn leave(&self, bytes: u64) {
        let flight = &self.tally.in_flight;
        flight.store(flight.load(Relaxed).saturating_sub(bytes), Relaxed);
    }
}

impl Controller for Metered {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.tally.in_flight.fetch_add(bytes.into(), Relaxed);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.leave(bytes);
        self.tally.acknowledged.fetch_add(bytes, Relaxed);
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        // Packets of the handshake that were discarded with its keys are not told of.
        self.tally.in_flight.store(in_flight, Relaxed);
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.leave(lost_bytes.into());
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            tally: Arc::clone(&self.tally),
            inner: self.inner.clone_box(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
