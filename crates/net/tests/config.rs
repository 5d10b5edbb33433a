//! The bounds of a channel's settings, each from both sides.

use polypath_net::{
    ChannelConfig, CodelConfig, ConfigError, DrrConfig, FqCodelConfig, GilbertElliottConfig,
    LossConfig, PieConfig, QueueConfig, RandomConfig, RedConfig, TimedGilbertElliottConfig,
};

fn channel(change: impl FnOnce(&mut ChannelConfig)) -> Result<(), ConfigError> {
    let mut config = ChannelConfig {
        rate_bps: Some(8_000_000),
        ..ChannelConfig::default()
    };
    change(&mut config);
    config.check()
}

fn queue(queue: QueueConfig) -> Result<(), ConfigError> {
    channel(|config| config.queue = queue)
}

fn loss(loss: LossConfig) -> Result<(), ConfigError> {
    channel(|config| config.loss = loss)
}

#[test]
fn rates_bursts_and_overheads_have_bounds() {
    let rate = |rate| channel(|config| config.rate_bps = rate);
    assert_eq!(rate(Some(0)), Err(ConfigError::Rate(0)));
    assert_eq!(rate(Some(1)), Ok(()));
    assert_eq!(rate(Some(1_000_000_000_000_000)), Ok(()));
    let beyond = 1_000_000_000_000_001;
    assert_eq!(rate(Some(beyond)), Err(ConfigError::Rate(beyond)));
    assert_eq!(rate(None), Ok(()));

    let burst = |burst| channel(|config| config.burst = burst);
    assert_eq!(burst(1 << 30), Ok(()));
    let beyond = (1 << 30) + 1;
    assert_eq!(burst(beyond), Err(ConfigError::Burst(beyond)));

    let bypass = |set: fn(&mut ChannelConfig)| {
        channel(|config| {
            config.bypass = 100;
            set(config);
        })
    };
    assert_eq!(bypass(|_| {}), Ok(()));
    let without_rate = bypass(|config| config.rate_bps = None);
    assert_eq!(without_rate, Err(ConfigError::Bypass));
    let at_host = bypass(|config| config.of_sender = true);
    assert_eq!(at_host, Err(ConfigError::Bypass));

    let overhead = |overhead| channel(|config| config.overhead = overhead);
    assert_eq!(overhead(65_535), Ok(()));
    assert_eq!(overhead(65_536), Err(ConfigError::Overhead(65_536)));
}

#[test]
fn chances_lie_between_0_and_1() {
    type Set = fn(&mut ChannelConfig, f64);
    let chances: [(&str, Set); 8] = [
        ("reorder", |config, chance| config.reorder = chance),
        ("duplicate", |config, chance| config.duplicate = chance),
        ("corrupt", |config, chance| config.corrupt = chance),
        ("probability", |config, chance| {
            config.loss = LossConfig::Random(RandomConfig {
                probability: chance,
            });
        }),
        ("good_to_bad", |config, chance| {
            config.loss = gilbert(0, chance)
        }),
        ("bad_to_good", |config, chance| {
            config.loss = gilbert(1, chance)
        }),
        ("good_loss", |config, chance| {
            config.loss = gilbert(2, chance)
        }),
        ("bad_loss", |config, chance| {
            config.loss = gilbert(3, chance)
        }),
    ];
    for (name, set) in chances {
        for chance in [0.0, 1.0] {
            assert_eq!(channel(|config| set(config, chance)), Ok(()), "{name}");
        }
        for chance in [-0.001, 1.001, f64::INFINITY] {
            let refused = channel(|config| set(config, chance));
            assert!(says(refused, name, "between 0 and 1"), "{name} {chance}");
        }
        assert!(channel(|config| set(config, f64::NAN)).is_err(), "{name}");
    }
    for place in 0..2 {
        let mut chances = [0.5; 2];
        chances[place] = 2.0;
        let timed = timed(1, 1, chances);
        let name = ["good_loss", "bad_loss"][place];
        assert!(says(loss(timed), name, "between 0 and 1, not 2"));
    }
}

/// Chances of one half, but for one.
fn gilbert(place: usize, chance: f64) -> LossConfig {
    let mut chances = [0.5; 4];
    chances[place] = chance;
    let [good_to_bad, bad_to_good, good_loss, bad_loss] = chances;
    LossConfig::GilbertElliott(GilbertElliottConfig {
        good_to_bad,
        bad_to_good,
        good_loss,
        bad_loss,
    })
}

fn timed(good_time: u64, bad_time: u64, [good_loss, bad_loss]: [f64; 2]) -> LossConfig {
    LossConfig::TimedGilbertElliott(TimedGilbertElliottConfig {
        good_time_ns: good_time,
        bad_time_ns: bad_time,
        good_loss,
        bad_loss,
    })
}

#[test]
fn states_of_a_link_last() {
    assert_eq!(loss(timed(1, 1, [0.5; 2])), Ok(()));
    assert!(says(
        loss(timed(0, 1, [0.5; 2])),
        "good_time",
        "at least 1, not 0"
    ));
    assert!(says(
        loss(timed(1, 0, [0.5; 2])),
        "bad_time",
        "at least 1, not 0"
    ));
}

#[test]
fn red_has_thresholds_in_order_and_a_weight() {
    let red = |min, max, probability, weight| {
        queue(QueueConfig::Red(RedConfig {
            min,
            max,
            probability,
            weight,
            gentle: false,
            limit: 100,
            ecn: false,
        }))
    };
    assert_eq!(red(5.0, 15.0, 0.1, 0.002), Ok(()));
    assert_eq!(red(1.0, 1.5, 1.0, 1.0), Ok(()));
    assert_eq!(red(0.0, 0.5, 1.0, 1.0), Ok(()));
    for (min, max, name) in [(-1.0, 15.0, "min"), (5.0, f64::INFINITY, "max")] {
        assert!(says(red(min, max, 0.1, 0.002), name, "at least 0"));
    }
    for max in [14.0, 15.0] {
        let order = "must be greater than 'min'";
        assert!(says(red(15.0, max, 0.1, 0.002), "max", order));
    }
    for weight in [0.0, -0.1, 1.1] {
        let refused = red(5.0, 15.0, 0.1, weight);
        assert!(says(refused, "weight", "above 0 and at most 1"));
    }
    let refused = red(5.0, 15.0, 1.1, 0.002);
    assert!(says(refused, "probability", "between 0 and 1, not 1.1"));
}

/// Whether a refusal names the setting and says this of it.
fn says(refused: Result<(), ConfigError>, setting: &str, what: &str) -> bool {
    let text = refused.map_or_else(|error| error.to_string(), |()| String::new());
    text.contains(setting) && text.contains(what)
}

#[test]
fn codel_and_pie_have_times_and_gains() {
    let codel = |target, interval| {
        queue(QueueConfig::Codel(CodelConfig {
            target_ns: target,
            interval_ns: interval,
            limit: 100,
            ecn: false,
        }))
    };
    assert_eq!(codel(1, 1), Ok(()));
    assert!(says(codel(0, 1), "target", "at least 1, not 0"));
    assert!(says(codel(1, 0), "interval", "at least 1, not 0"));

    let pie = |change: fn(&mut PieConfig)| {
        let mut config = PIE;
        change(&mut config);
        queue(QueueConfig::Pie(config))
    };
    assert_eq!(pie(|_| {}), Ok(()));
    assert!(says(pie(|pie| pie.target_ns = 0), "target", "at least 1"));
    assert!(says(pie(|pie| pie.tupdate_ns = 0), "tupdate", "at least 1"));
    assert_eq!(pie(|pie| (pie.alpha, pie.beta) = (0.0, 1000.0)), Ok(()));
    let gain = "between 0 and 1000";
    assert!(says(pie(|pie| pie.alpha = -0.1), "alpha", gain));
    assert!(says(pie(|pie| pie.beta = 1000.1), "beta", gain));
}

#[test]
fn queues_of_flows_take_packets_and_serve_them() {
    let drr = |limit, quantum, flows| {
        queue(QueueConfig::Drr(DrrConfig {
            limit,
            quantum_bytes: quantum,
            flows,
        }))
    };
    assert_eq!(drr(1, 256, 1), Ok(()));
    assert_eq!(drr(1, 256, 65_536), Ok(()));
    assert!(says(drr(0, 256, 1), "limit", "at least 1"));
    assert!(says(drr(1, 255, 1), "quantum", "at least 256, not 255"));
    assert!(says(drr(1, 256, 0), "flows", "between 1 and 65536"));
    assert!(says(drr(1, 256, 65_537), "flows", "between 1 and 65536"));

    let fair = |change: fn(&mut FqCodelConfig)| {
        let mut config = FQ_CODEL;
        change(&mut config);
        queue(QueueConfig::FqCodel(config))
    };
    assert_eq!(fair(|_| {}), Ok(()));
    let least = "at least 1";
    assert!(says(fair(|fair| fair.target_ns = 0), "target", least));
    assert!(says(fair(|fair| fair.interval_ns = 0), "interval", least));
    assert!(says(fair(|fair| fair.drop_batch = 0), "drop_batch", least));
    assert!(says(fair(|fair| fair.limit = 0), "limit", least));
}

const PIE: PieConfig = PieConfig {
    target_ns: 1,
    tupdate_ns: 1,
    alpha: 0.125,
    beta: 1.25,
    limit: 100,
    ecn: false,
};

const FQ_CODEL: FqCodelConfig = FqCodelConfig {
    target_ns: 1,
    interval_ns: 1,
    limit: 1,
    quantum_bytes: 256,
    flows: 1,
    drop_batch: 1,
    ecn: false,
};
