//! The same download by our endpoint and by noq-proto: GET of 5 MB.
//!
//! It runs over one or two links of 10 Mbit/s with a round trip of 40 ms. The queues are drop-tail, of 100 kB.

use polypath_interop::{
    End, Exchange, Link, Noq, Ours, Settings, Side, World, client_address, server_address,
};
use polypath_noq::noq_proto::{FourTuple, PathStatus};
use polypath_transport::{Config, MILLISECOND as MS, Nanos, SECOND};

const BYTES: u64 = 5_000_000;

/// Opens the second path, where the endpoint does not do so by itself.
trait Client: End {
    fn open_second(&mut self, _: Nanos) {}
}

impl Client for Ours {}

impl Client for Noq {
    fn open_second(&mut self, now: Nanos) {
        if self.connection().paths().len() > 1 {
            return;
        }
        let at = self.at(now);
        let path = FourTuple::new((server_address(), 80).into(), Some(client_address(1)));
        if self
            .connection()
            .open_path(path, PathStatus::Available, at)
            .is_ok()
        {
            self.on_time(now);
        }
    }
}

fn run<C: Client, S: End>(name: &str, paths: usize, client: C, server: S) {
    let link = Link {
        one_way: 20 * MS,
        rate: 10_000_000,
        queue: 100_000,
    };
    let mut world = World::new(client, server, vec![link; paths]);
    let mut exchange = Exchange::default().request(Side::Client, 100, BYTES);
    let done = world.run_until(60 * SECOND, |world| {
        let now = world.now;
        if paths > 1 && world.client.established() {
            world.client.open_second(now);
        }
        exchange.drive(&mut world.client, &mut world.server, now)
    });
    let of = |side: Side| world.seen.iter().filter(move |seen| seen.from == side);
    let data: Vec<u32> = of(Side::Server).map(|seen| seen.len).collect();
    let full = data.iter().filter(|&&len| len > 1000).count();
    let longest = data.iter().max().copied().unwrap_or(0);
    let sent: u64 = data.iter().map(|&len| u64::from(len)).sum();
    let by_link: Vec<u64> = (0..paths)
        .map(|link| {
            of(Side::Server)
                .filter(|seen| seen.link == link)
                .map(|it| u64::from(it.len))
                .sum()
        })
        .collect();
    let at = |len: u32| {
        let first = of(Side::Server).find(|seen| seen.len >= len);
        first.map_or(0, |seen| seen.at / MS)
    };
    println!(
        "{name:28} {paths} {:>9.3} s{} full {full:5} longest {longest} (first at {} ms) sent {sent:8} back {:5} overflowed {:4} by link {by_link:?}",
        world.now as f64 / SECOND as f64,
        if done { ' ' } else { '!' },
        at(longest),
        of(Side::Client).count(),
        world.overflowed,
    );
}

fn main() {
    for reno in [true, false] {
        for paths in [1, 2] {
            let config = Config {
                multipath: paths > 1,
                congestion: if reno { "reno".into() } else { "cubic".into() },
                ..Config::default()
            };
            let settings = Settings {
                paths: if paths > 1 { 4 } else { 0 },
                reno,
                ..Settings::default()
            };
            let name = if reno { "reno" } else { "cubic" };
            let ours = || (Ours::client(&config, paths, 1), Ours::server(&config, 2));
            let noq = || {
                (
                    Noq::client(settings),
                    Noq::server(Settings {
                        seed: 2,
                        ..settings
                    }),
                )
            };
            let (client, server) = ours();
            run(&format!("{name}: ours"), paths, client, server);
            let (client, server) = noq();
            run(&format!("{name}: noq"), paths, client, server);
            let ((client, _), (_, server)) = (ours(), noq());
            run(&format!("{name}: ours from noq"), paths, client, server);
            let ((_, server), (client, _)) = (ours(), noq());
            run(&format!("{name}: noq from ours"), paths, client, server);
        }
    }
}
