//! Recovery metrics as qlog has them (quic-events section 7.2).

use polypath_trace::qlog::{fields, milliseconds};
use polypath_transport::Nanos;
use polypath_transport::quic::{Metrics, RoundTrip};
use serde_json::{Map, Value};

/// The fields of `recovery_metrics_updated` whose values are not those of before.
pub(super) fn changed(before: Option<&Metrics>, now: &Metrics) -> Map<String, Value> {
    fn news<T: PartialEq + Into<Value>>(before: Option<T>, now: Option<T>) -> Option<Value> {
        now.filter(|now| before.as_ref() != Some(now))
            .map(Into::into)
    }
    let earlier = before.and_then(|before| before.rtt);
    let ms = |rtt: Option<RoundTrip>, pick: fn(RoundTrip) -> Nanos| {
        rtt.map(|rtt| milliseconds(pick(rtt)))
    };
    let trip = |pick| news(ms(earlier, pick), ms(now.rtt, pick));
    let rate =
        |metrics: &Metrics| Some(metrics.pacing_rate.saturating_mul(8)).filter(|rate| *rate > 0);
    fields([
        ("min_rtt", trip(|it| it.min)),
        ("smoothed_rtt", trip(|it| it.smoothed)),
        ("latest_rtt", trip(|it| it.latest)),
        ("rtt_variance", trip(|it| it.variation)),
        (
            "pto_count",
            news(before.map(|it| it.pto_count), Some(now.pto_count)),
        ),
        (
            "congestion_window",
            news(
                before.map(|it| it.congestion_window),
                Some(now.congestion_window),
            ),
        ),
        (
            "bytes_in_flight",
            news(
                before.map(|it| it.bytes_in_flight),
                Some(now.bytes_in_flight),
            ),
        ),
        (
            "ssthresh",
            news(before.and_then(|it| it.ssthresh), now.ssthresh),
        ),
        (
            "packets_in_flight",
            news(
                before.map(|it| it.packets_in_flight),
                Some(now.packets_in_flight),
            ),
        ),
        ("pacing_rate", news(before.and_then(rate), rate(now))),
    ])
}
