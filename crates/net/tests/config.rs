//! What a channel can be and what not: each bound from both sides.

use polypath_net::{
    ChannelConfig, ConfigError, DrrConfig, FqCodelConfig, LossConfig, PieConfig, QueueConfig,
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
    let alone = channel(|config| (config.rate_bps, config.burst) = (None, 1));
    assert_eq!(alone, Err(ConfigError::BurstWithoutRate));

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
        ("loss", |config, chance| {
            config.loss = LossConfig::Random {
                probability: chance,
            };
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
            assert_eq!(refused, Err(ConfigError::Probability(name, chance)));
        }
        assert!(channel(|config| set(config, f64::NAN)).is_err(), "{name}");
    }
    for place in 0..2 {
        let mut chances = [0.5; 2];
        chances[place] = 2.0;
        let timed = timed(1, 1, chances);
        let name = ["good_loss", "bad_loss"][place];
        assert_eq!(loss(timed), Err(ConfigError::Probability(name, 2.0)));
    }
}

/// Chances of one half, but for one.
fn gilbert(place: usize, chance: f64) -> LossConfig {
    let mut chances = [0.5; 4];
    chances[place] = chance;
    let [good_to_bad, bad_to_good, good_loss, bad_loss] = chances;
    LossConfig::GilbertElliott {
        good_to_bad,
        bad_to_good,
        good_loss,
        bad_loss,
    }
}

fn timed(good_time: u64, bad_time: u64, [good_loss, bad_loss]: [f64; 2]) -> LossConfig {
    LossConfig::TimedGilbertElliott {
        good_time,
        bad_time,
        good_loss,
        bad_loss,
    }
}

#[test]
fn states_of_a_link_last() {
    assert_eq!(loss(timed(1, 1, [0.5; 2])), Ok(()));
    assert_eq!(loss(timed(0, 1, [0.5; 2])), Err(ConfigError::Sojourn));
    assert_eq!(loss(timed(1, 0, [0.5; 2])), Err(ConfigError::Sojourn));
}

#[test]
fn red_has_thresholds_in_order_and_a_weight() {
    let red = |min, max, probability, weight| {
        queue(QueueConfig::Red {
            min,
            max,
            probability,
            weight,
            gentle: false,
            limit: 100,
            ecn: false,
        })
    };
    assert_eq!(red(5.0, 15.0, 0.1, 0.002), Ok(()));
    assert_eq!(red(0.0, 0.0, 1.0, 1.0), Ok(()));
    for (min, max) in [(-1.0, 15.0), (16.0, 15.0), (5.0, f64::INFINITY)] {
        let thresholds = Err(ConfigError::RedThresholds { min, max });
        assert_eq!(red(min, max, 0.1, 0.002), thresholds);
    }
    for weight in [0.0, -0.1, 1.1] {
        let refused = Err(ConfigError::RedWeight(weight));
        assert_eq!(red(5.0, 15.0, 0.1, weight), refused);
    }
    let chance = Err(ConfigError::Probability("RED's probability", 1.1));
    assert_eq!(red(5.0, 15.0, 1.1, 0.002), chance);
}

#[test]
fn codel_and_pie_have_times_and_gains() {
    let codel = |target, interval| {
        queue(QueueConfig::Codel {
            target,
            interval,
            limit: 100,
            ecn: false,
        })
    };
    assert_eq!(codel(1, 1), Ok(()));
    assert_eq!(codel(0, 1), Err(ConfigError::Codel));
    assert_eq!(codel(1, 0), Err(ConfigError::Codel));

    let pie = |change: fn(&mut PieConfig)| {
        let mut config = PIE;
        change(&mut config);
        queue(QueueConfig::Pie(config))
    };
    assert_eq!(pie(|_| {}), Ok(()));
    assert_eq!(pie(|pie| pie.target = 0), Err(ConfigError::Pie));
    assert_eq!(pie(|pie| pie.tupdate = 0), Err(ConfigError::Pie));
    assert_eq!(pie(|pie| (pie.alpha, pie.beta) = (0.0, 1000.0)), Ok(()));
    let alpha = Err(ConfigError::PieGain("alpha", -0.1));
    assert_eq!(pie(|pie| pie.alpha = -0.1), alpha);
    let beta = Err(ConfigError::PieGain("beta", 1000.1));
    assert_eq!(pie(|pie| pie.beta = 1000.1), beta);
}

#[test]
fn queues_of_flows_take_packets_and_serve_them() {
    let drr = |limit, quantum, flows| {
        queue(QueueConfig::Drr(DrrConfig {
            limit,
            quantum,
            flows,
        }))
    };
    assert_eq!(drr(1, 256, 1), Ok(()));
    assert_eq!(drr(1, 256, 65_536), Ok(()));
    assert_eq!(drr(0, 256, 1), Err(ConfigError::EmptyLimit));
    assert_eq!(drr(1, 255, 1), Err(ConfigError::Quantum(255)));
    assert_eq!(drr(1, 256, 0), Err(ConfigError::Flows(0)));
    assert_eq!(drr(1, 256, 65_537), Err(ConfigError::Flows(65_537)));

    let fair = |change: fn(&mut FqCodelConfig)| {
        let mut config = FQ_CODEL;
        change(&mut config);
        queue(QueueConfig::FqCodel(config))
    };
    assert_eq!(fair(|_| {}), Ok(()));
    assert_eq!(fair(|fair| fair.target = 0), Err(ConfigError::Codel));
    assert_eq!(fair(|fair| fair.interval = 0), Err(ConfigError::Codel));
    assert_eq!(
        fair(|fair| fair.drop_batch = 0),
        Err(ConfigError::DropBatch)
    );
    assert_eq!(fair(|fair| fair.limit = 0), Err(ConfigError::EmptyLimit));
}

const PIE: PieConfig = PieConfig {
    target: 1,
    tupdate: 1,
    alpha: 0.125,
    beta: 1.25,
    limit: 100,
    ecn: false,
};

const FQ_CODEL: FqCodelConfig = FqCodelConfig {
    target: 1,
    interval: 1,
    limit: 1,
    quantum: 256,
    flows: 1,
    drop_batch: 1,
    ecn: false,
};
