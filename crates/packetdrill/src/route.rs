//! Routes that a script's commands set, and their effect on connections to their destinations (ip-route(8)).

use std::net::IpAddr;

use crate::unsupported;

/// What a route says of its packets (RTAX_MTU, RTAX_ADVMSS, RTAX_INITCWND); what it leaves to the interface is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub mtu: Option<u32>,
    /// Reports of a smaller MTU are not heard.
    pub mtu_locked: bool,
    pub announced_mss: Option<u16>,
    pub initial_window: Option<u32>,
}

#[derive(Debug)]
struct Route {
    destination: IpAddr,
    prefix: u32,
    metrics: Metrics,
}

/// Beside the one of the interface.
#[derive(Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

impl Routes {
    /// Of the most specific route to an address; absent: the interface's own.
    pub fn to(&self, address: IpAddr) -> Option<Metrics> {
        let matching = self.0.iter().filter(|it| it.matches(address));
        matching.max_by_key(|it| it.prefix).map(|it| it.metrics)
    }

    /// Takes what follows `ip route`.
    pub fn take(&mut self, words: &[&str]) {
        let [verb, destination, rest @ ..] = words else {
            unsupported("a command of routes without a destination");
            return;
        };
        let (Some((destination, prefix)), Some(metrics)) = (parse(destination), read(rest)) else {
            return;
        };
        let place = self
            .0
            .iter()
            .position(|it| (it.destination, it.prefix) == (destination, prefix));
        let route = Route {
            destination,
            prefix,
            metrics,
        };
        match (*verb, place) {
            ("add" | "replace", None) => self.0.push(route),
            ("change" | "replace", Some(place)) => self.0[place] = route,
            ("del" | "delete", Some(place)) => {
                self.0.remove(place);
            }
            _ => {
                unsupported(&format!("{verb} of this route"));
            }
        }
    }
}

impl Route {
    fn matches(&self, address: IpAddr) -> bool {
        let bits = |it: IpAddr| match it {
            IpAddr::V4(it) => (u128::from(it.to_bits()) << 96, 32),
            IpAddr::V6(it) => (it.to_bits(), 128),
        };
        let ((own, most), (other, others_most)) = (bits(self.destination), bits(address));
        let differs = own ^ other;
        most == others_most && differs.leading_zeros() >= self.prefix
    }
}

/// A destination and the length of its prefix.
fn parse(text: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address = address.parse::<IpAddr>().ok();
    let most = address.map_or(0, |it| if it.is_ipv4() { 32 } else { 128 });
    let prefix = prefix.map_or(Some(most), |it| it.parse().ok());
    let parsed = address.zip(prefix).filter(|(_, prefix)| *prefix <= most);
    if parsed.is_none() {
        unsupported(&format!("the destination {text} of a route"));
    }
    parsed
}

/// A route's attributes. Nothing: there is one that has no meaning here.
fn read(words: &[&str]) -> Option<Metrics> {
    let mut metrics = Metrics::default();
    let mut words = words.iter().copied();
    while let Some(name) = words.next() {
        let mut value = words.next().unwrap_or_default();
        let understood = match name {
            // Everything leaves by the same interface.
            "via" | "dev" => true,
            "mtu" => {
                if value == "lock" {
                    metrics.mtu_locked = true;
                    value = words.next().unwrap_or_default();
                }
                metrics.mtu = value.parse().ok();
                metrics.mtu.is_some()
            }
            "advmss" => {
                metrics.announced_mss = value.parse().ok();
                metrics.announced_mss.is_some()
            }
            "initcwnd" => {
                metrics.initial_window = value.parse().ok();
                metrics.initial_window.is_some()
            }
            _ => false,
        };
        if !understood {
            unsupported(&format!("{name} {value} of a route"));
            return None;
        }
    }
    Some(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(routes: &mut Routes, command: &str) {
        routes.take(&command.split(' ').collect::<Vec<_>>());
    }

    #[test]
    fn the_most_specific_route_counts() {
        let mut routes = Routes::default();
        take(&mut routes, "add 192.0.2.0/24 dev tun0 mtu 1400");
        take(
            &mut routes,
            "add 192.0.2.1 via 192.168.0.2 dev tun0 advmss 600 mtu lock 640 initcwnd 11",
        );
        take(&mut routes, "add 2001:DB8::/32 dev tun0 mtu 1280");
        let to = |routes: &Routes, text: &str| routes.to(text.parse().unwrap());
        let specific = to(&routes, "192.0.2.1").unwrap();
        assert_eq!((specific.mtu, specific.mtu_locked), (Some(640), true));
        assert_eq!(specific.announced_mss, Some(600));
        assert_eq!(specific.initial_window, Some(11));
        assert_eq!(to(&routes, "192.0.2.2").unwrap().mtu, Some(1400));
        assert_eq!(to(&routes, "192.0.3.1"), None);
        assert_eq!(to(&routes, "2001:db8::1").unwrap().mtu, Some(1280));
        take(&mut routes, "change 192.0.2.1 dev tun0 mtu 1500");
        let changed = to(&routes, "192.0.2.1").unwrap();
        assert_eq!((changed.mtu, changed.mtu_locked), (Some(1500), false));
        assert_eq!(changed.initial_window, None);
        take(&mut routes, "del 192.0.2.1");
        assert_eq!(to(&routes, "192.0.2.1").unwrap().mtu, Some(1400));
    }

    #[test]
    fn a_route_of_other_attributes_is_not_taken() {
        let mut routes = Routes::default();
        take(&mut routes, "add 192.0.2.1 dev tun0 mtu 1400 quickack 1");
        assert_eq!(routes.to("192.0.2.1".parse().unwrap()), None);
    }
}
