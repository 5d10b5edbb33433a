//! Takes turns on a channel of the air that several radios share: DCF and EDCA, slot by slot.
//!
//! After every exchange the air is idle for a radio's interframe space. Then the radio's backoff counts down a slot at
//! a time, and stands still while others send (IEEE Std 802.11-2016, 10.3.4.3 and 10.22.2.2). Two radios whose backoffs
//! end together collide, and both double their contention windows. So collisions are not a parameter: they grow with
//! the number of radios, as in Bianchi's analysis (2000).

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::standard::{CW_MAX, CW_MIN, SLOT};
use crate::ids::{NEVER, Nanos};

/// What a radio sends in one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Airtime {
    /// Up to the last bit of data.
    pub data: Nanos,
    /// From there to the end of the answer.
    pub answer: Nanos,
}

/// The queues that radios send from, by channel.
pub(crate) trait Queues {
    /// Whether there is anything to be sent.
    fn waits(&self, channel: u32) -> bool;

    /// Takes what is sent from now on; nothing if there is nothing after all.
    fn begin(&mut self, channel: u32) -> Option<Airtime>;

    /// What was begun has been sent, alone or in a collision: whether an answer comes.
    fn finish(&mut self, channel: u32, collided: bool) -> bool;
}

/// One node's sender on the medium, which serves its channels in turn.
#[derive(Debug)]
struct Radio {
    channels: Vec<u32>,
    turn: usize,
    /// Interframe space before the first slot.
    space: Nanos,
    /// Attempts after which the contention window falls back.
    attempts: u32,
    /// Slots of the backoff that are left as the air became idle.
    slots: u32,
    /// Exchanges without an answer since the last one that had one.
    failures: u32,
    /// Since when it has something to send.
    ready: Option<Nanos>,
    rng: Pcg64Mcg,
}

impl Radio {
    /// A new backoff; one more doubling for each failure (10.22.2.2).
    fn draw(&mut self) {
        let window = ((CW_MIN + 1) << self.failures.min(16)) - 1;
        self.slots = (self.rng.next_u64() >> 32) as u32 & window.min(CW_MAX);
    }

    fn access(&self, idle_since: Nanos) -> Nanos {
        let counted = idle_since + self.space + Nanos::from(self.slots) * SLOT;
        self.ready.map_or(NEVER, |ready| counted.max(ready))
    }

    /// Somebody sends: the backoff stands still from here on.
    fn freeze(&mut self, idle_since: Nanos, now: Nanos) {
        let passed = now.saturating_sub(idle_since + self.space) / SLOT;
        self.slots = self
            .slots
            .saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
    }

    fn has_work(&self, queues: &impl Queues) -> bool {
        self.channels.iter().any(|channel| queues.waits(*channel))
    }

    fn begin(&mut self, queues: &mut impl Queues) -> Option<(u32, Airtime)> {
        let count = self.channels.len();
        let (place, airtime) = (0..count).find_map(|step| {
            let place = (self.turn + step) % count;
            let airtime = queues.begin(self.channels[place])?;
            Some((place, airtime))
        })?;
        self.turn = (place + 1) % count;
        Some((self.channels[place], airtime))
    }
}

/// What is on the air.
#[derive(Debug)]
struct Exchange {
    /// Radios and the channels that they serve.
    senders: Vec<(usize, u32)>,
    /// End of the longest data.
    until: Nanos,
    answer: Nanos,
}

#[derive(Debug, Default)]
pub(crate) struct Medium {
    radios: Vec<Radio>,
    /// Since when the air is idle, or from when on it will be after an answer.
    idle_since: Nanos,
    exchange: Option<Exchange>,
}

impl Medium {
    pub fn add(&mut self, rng: Pcg64Mcg) -> usize {
        self.radios.push(Radio {
            channels: Vec::new(),
            turn: 0,
            space: 0,
            attempts: 0,
            slots: 0,
            failures: 0,
            ready: None,
            rng,
        });
        self.radios.len() - 1
    }

    /// Has a radio serve a channel, for which it waits so long before its first slot, and gives up after so many attempts. One that serves
    /// several has the most of either: with a link to a QoS station it is one itself, and contends by EDCA for all.
    pub fn serve(&mut self, radio: usize, channel: u32, space: Nanos, attempts: u32) {
        let radio = &mut self.radios[radio];
        radio.channels.push(channel);
        radio.space = radio.space.max(space);
        radio.attempts = radio.attempts.max(attempts);
    }

    pub fn channels(&self) -> impl Iterator<Item = u32> + '_ {
        self.radios
            .iter()
            .flat_map(|radio| radio.channels.iter().copied())
    }

    /// When something happens next.
    pub fn next(&self) -> Nanos {
        match &self.exchange {
            Some(exchange) => exchange.until,
            None => self
                .radios
                .iter()
                .map(|radio| radio.access(self.idle_since))
                .min()
                .unwrap_or(NEVER),
        }
    }

    fn is_busy(&self, now: Nanos) -> bool {
        self.exchange.is_some() || now < self.idle_since
    }

    /// Something came into a radio's queues, or all of it went. Who finds the air busy begins a backoff; who finds it idle does not (10.22.2.2).
    pub fn notice(&mut self, now: Nanos, radio: usize, queues: &impl Queues) {
        let busy = self.is_busy(now);
        let radio = &mut self.radios[radio];
        let work = radio.has_work(queues);
        if work && radio.ready.is_none() && busy && radio.slots == 0 {
            radio.draw();
        }
        radio.ready = work.then(|| radio.ready.unwrap_or(now));
    }

    /// Does what is due by now: whether anything was.
    pub fn run(&mut self, now: Nanos, queues: &mut impl Queues) -> bool {
        let mut any = false;
        while self.next() <= now {
            any = true;
            match self.exchange.take() {
                Some(exchange) => self.end(now, exchange, queues),
                None => self.begin(now, queues),
            }
        }
        any
    }

    fn begin(&mut self, now: Nanos, queues: &mut impl Queues) {
        let idle_since = self.idle_since;
        let mut exchange = Exchange {
            senders: Vec::new(),
            until: now,
            answer: 0,
        };
        for (index, radio) in self.radios.iter_mut().enumerate() {
            if radio.access(idle_since) > now {
                continue;
            }
            let Some((channel, airtime)) = radio.begin(queues) else {
                radio.ready = None;
                continue;
            };
            exchange.senders.push((index, channel));
            exchange.until = exchange.until.max(now + airtime.data);
            exchange.answer = exchange.answer.max(airtime.answer);
        }
        if exchange.senders.is_empty() {
            return;
        }
        for radio in &mut self.radios {
            radio.freeze(idle_since, now);
        }
        self.exchange = Some(exchange);
    }

    /// The data has been sent. After a collision the air counts as taken for as long as an answer would take (EIFS, 10.3.2.3.7).
    fn end(&mut self, now: Nanos, exchange: Exchange, queues: &mut impl Queues) {
        self.idle_since = now + exchange.answer;
        let collided = exchange.senders.len() > 1;
        for (index, channel) in exchange.senders {
            let answered = queues.finish(channel, collided);
            let radio = &mut self.radios[index];
            radio.failures = if answered || radio.failures + 1 >= radio.attempts {
                0
            } else {
                radio.failures + 1
            };
            radio.draw();
            radio.ready = radio.has_work(queues).then_some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    const US: Nanos = 1_000;

    /// As many saturated stations as there are entries, each with one frame of this airtime at a time; what became of them.
    struct Saturated {
        data: Vec<Nanos>,
        sent: Vec<u64>,
        collided: Vec<u64>,
    }

    impl Saturated {
        fn new(data: Vec<Nanos>) -> Self {
            let counts = vec![0; data.len()];
            Self {
                data,
                sent: counts.clone(),
                collided: counts,
            }
        }
    }

    impl Queues for Saturated {
        fn waits(&self, _: u32) -> bool {
            true
        }

        fn begin(&mut self, channel: u32) -> Option<Airtime> {
            Some(Airtime {
                data: self.data[channel as usize],
                answer: 44 * US,
            })
        }

        fn finish(&mut self, channel: u32, collided: bool) -> bool {
            let count = if collided {
                &mut self.collided
            } else {
                &mut self.sent
            };
            count[channel as usize] += 1;
            !collided
        }
    }

    fn run(data: Vec<Nanos>, until: Nanos) -> Saturated {
        let mut medium = Medium::default();
        for channel in 0..data.len() as u32 {
            let rng = stream(1, "channel", channel.into(), "backoff");
            let radio = medium.add(rng);
            medium.serve(radio, channel, 34 * US, u32::MAX);
        }
        let mut stations = Saturated::new(data);
        for radio in 0..medium.radios.len() {
            medium.notice(0, radio, &stations);
        }
        while medium.next() < until {
            medium.run(medium.next(), &mut stations);
        }
        stations
    }

    /// The probability of a collision among `n` saturated stations: the fixed point of Bianchi (2000), equations 7 and 9, with
    /// windows from 16 to 1024 slots. His backoffs count a
    /// busy period as a slot; those of the standard do not, so that the first slot after it is only for who has just sent, and collisions are
    /// a little fewer (Tinnirello, Bianchi and Xiao 2010).
    fn bianchi(n: i32) -> f64 {
        let (window, stages) = (16.0, 6);
        let tau = |p: f64| {
            let sum: f64 = (0..stages).map(|stage| (2.0 * p).powi(stage)).sum();
            2.0 / (1.0 + window + p * window * sum)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let p = 0.5 * (low + high);
            if 1.0 - (1.0 - tau(p)).powi(n - 1) > p {
                low = p;
            } else {
                high = p;
            }
        }
        low
    }

    #[test]
    fn collisions_grow_with_the_stations_as_bianchi_says() {
        for n in [2, 5, 10, 20] {
            let found = run(vec![300 * US; n], 300_000_000 * US);
            let collided: u64 = found.collided.iter().sum();
            let all = collided + found.sent.iter().sum::<u64>();
            let (share, wanted) = (collided as f64 / all as f64, bianchi(n as i32));
            let few = wanted - share;
            assert!((-0.01..0.03).contains(&few), "{n}: {share} {wanted}");
        }
    }

    #[test]
    fn stations_have_equal_turns_whatever_they_take() {
        let found = run(vec![200 * US, 200 * US, 2000 * US], 600_000_000 * US);
        let mean = found.sent.iter().sum::<u64>() as f64 / 3.0;
        for sent in &found.sent {
            assert!((*sent as f64 / mean - 1.0).abs() < 0.02, "{:?}", found.sent);
        }
    }

    #[test]
    fn a_station_alone_waits_for_half_a_window_on_average() {
        let found = run(vec![200 * US], 100_000_000 * US);
        let one = 34.0 + 7.5 * 9.0 + 200.0 + 44.0;
        let wanted = 100_000_000.0 / one;
        assert!(
            (found.sent[0] as f64 / wanted - 1.0).abs() < 0.003,
            "{} {wanted}",
            found.sent[0]
        );
    }

    /// One frame, if there is one.
    struct Single(Option<()>);

    impl Queues for Single {
        fn waits(&self, _: u32) -> bool {
            self.0.is_some()
        }

        fn begin(&mut self, _: u32) -> Option<Airtime> {
            self.0.take().map(|()| Airtime {
                data: 100 * US,
                answer: 44 * US,
            })
        }

        fn finish(&mut self, _: u32, _: bool) -> bool {
            true
        }
    }

    #[test]
    fn an_idle_medium_is_taken_at_once() {
        let mut medium = Medium::default();
        let radio = medium.add(stream(1, "channel", 0, "backoff"));
        medium.serve(radio, 0, 34 * US, 7);
        let mut queues = Single(Some(()));
        medium.notice(1000 * US, radio, &queues);
        assert_eq!(medium.next(), 1000 * US);
        assert!(medium.run(1000 * US, &mut queues));
        assert_eq!(medium.next(), 1100 * US);
        assert!(medium.run(1100 * US, &mut queues));
        assert_eq!(medium.next(), NEVER);
        // Long after the backoff that follows every exchange.
        queues.0 = Some(());
        medium.notice(5000 * US, radio, &queues);
        assert_eq!(medium.next(), 5000 * US);
    }
}
