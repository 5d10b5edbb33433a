//! The settings that a script's commands make. The stand-ins of `sysctl` and `ip` write one line per call into a file.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use polypath_transport::{Buffer, Choice, Config, Limits, MtuProbing, Profile};
use serde_json::json;

use crate::route::Routes;
use crate::unsupported;

/// Holds the path of the file that the commands write.
const COMMANDS: &str = "POLYPATH_COMMANDS";

/// Settings of the host under test.
#[derive(Debug, Default)]
pub(crate) struct Host {
    commands: Option<PathBuf>,
    read: u64,
    sysctls: BTreeMap<String, String>,
    /// Every address, that of the first interface first.
    pub addresses: Vec<IpAddr>,
    pub mtu: u32,
    routes: Routes,
    signal: Vec<IpAddr>,
    limits: BTreeMap<String, u64>,
}

impl Host {
    /// The host as packetdrill's options, which are in its environment, make it.
    pub fn from_environment() -> Self {
        let option = |name: &str| std::env::var(name).ok();
        let mut host = Self {
            commands: option(COMMANDS).map(PathBuf::from),
            mtu: option("OPT_MTU")
                .and_then(|it| it.parse().ok())
                .unwrap_or(1500),
            ..Self::default()
        };
        host.addresses
            .extend(option("OPT_LOCAL_IP").and_then(|it| it.parse::<IpAddr>().ok()));
        host
    }

    /// Reads what commands have written since. True: there was something.
    pub fn refresh(&mut self) -> bool {
        let Some(path) = &self.commands else {
            return false;
        };
        let len = std::fs::metadata(path).map_or(0, |it| it.len());
        if len == self.read {
            return false;
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.get(self.read as usize..).unwrap_or_default();
        self.read = text.len() as u64;
        for line in lines.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            self.take(&words);
        }
        true
    }

    fn take(&mut self, words: &[&str]) {
        match words {
            ["sysctl", name, value @ ..] => {
                self.sysctls.insert((*name).to_owned(), value.join(" "));
            }
            ["ip", rest @ ..] => {
                let rest = match rest {
                    ["-6", rest @ ..] => rest,
                    rest => rest,
                };
                self.take_ip(rest);
            }
            ["tc", "qdisc", "delete", ..] => {
                unsupported("a queue that drops");
            }
            _ => {}
        }
    }

    fn take_ip(&mut self, words: &[&str]) {
        match words {
            ["addr", "add", address, ..] => {
                let address = address.split('/').next().unwrap_or_default();
                self.addresses.extend(address.parse::<IpAddr>());
            }
            ["route", rest @ ..] => self.routes.take(rest),
            ["mptcp", "endpoint", "flush"] => self.signal.clear(),
            ["mptcp", "endpoint", "add", address, flags @ ..] => {
                if let Ok(address) = address.parse()
                    && flags.contains(&"signal")
                {
                    self.signal.push(address);
                }
            }
            ["mptcp", "limits", "set", limits @ ..] => {
                for pair in limits.chunks_exact(2) {
                    self.limits
                        .insert(pair[0].to_owned(), pair[1].parse().unwrap_or(0));
                }
            }
            _ => {}
        }
    }

    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.get(name).map(String::as_str)
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.sysctl(name).map_or(default, |value| value != "0")
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.sysctl(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    }

    fn buffer(&self, name: &str, default: Buffer) -> Buffer {
        let text = self.sysctl(name).unwrap_or_default();
        let sizes: Vec<u64> = text
            .split_whitespace()
            .filter_map(|it| it.parse().ok())
            .collect();
        match sizes[..] {
            [minimum, default, maximum] => Buffer {
                minimum,
                default,
                maximum,
            },
            _ => default,
        }
    }

    /// Whether MPTCP sockets speak MPTCP.
    pub fn multipath(&self) -> bool {
        self.flag("net.mptcp.enabled", true)
    }

    /// Whether a peer's ECN is answered; asking for it takes more.
    pub fn accepts_ecn(&self) -> bool {
        self.flag("net.ipv4.tcp_ecn", true)
    }

    /// Addresses that connections may use, endpoints first: they are numbered from 1.
    pub fn endpoints(&self, first: IpAddr) -> Vec<(IpAddr, bool)> {
        let others = self.signal.iter().copied().filter(|it| *it != first);
        others.chain([first]).map(|it| (it, false)).collect()
    }

    /// What a socket may leave unsent at most (`tcp_notsent_lowat`).
    pub fn unsent_limit(&self) -> u64 {
        self.number("net.ipv4.tcp_notsent_lowat", u32::MAX).into()
    }

    /// What packets to an address may be long (`dst_mtu`).
    pub fn mtu_to(&self, address: IpAddr) -> u32 {
        let of_route = self.routes.to(address).and_then(|it| it.mtu);
        of_route.unwrap_or(self.mtu)
    }

    /// Whether reports about packets to an address are not heard (`ip_mtu_locked`).
    pub fn mtu_locked(&self, address: IpAddr) -> bool {
        self.routes.to(address).is_some_and(|it| it.mtu_locked)
    }

    /// What the route to a peer changes of a connection's settings.
    pub fn apply_route(&self, remote: IpAddr, config: &mut Config) {
        let Some(route) = self.routes.to(remote) else {
            return;
        };
        if config.multipath {
            unsupported("Multipath TCP over routes of its own");
        }
        config.mtu = self.mtu_to(remote);
        config.limits.announced_mss = route.announced_mss;
        config.initial_window = route.initial_window.unwrap_or(config.initial_window);
    }

    /// A connection's settings: upstream Linux with this host's sysctls (Documentation/networking/ip-sysctl.rst, mptcp-sysctl.rst).
    pub fn config(&self, multipath: bool) -> Config {
        let base = Profile::Linux.config();
        let name = |key: &str| format!("net.ipv4.tcp_{key}");
        let mut path_manager = Choice::from("endpoints");
        let limit = |key: &str| self.limits.get(key).copied().unwrap_or(0);
        let mut set = |key: &str, value| path_manager.parameters.insert(key.into(), value);
        set(
            "flags",
            json!(if self.signal.is_empty() {
                "none"
            } else {
                "signal"
            }),
        );
        set("subflows", json!(limit("subflows")));
        set("add_addr_accepted", json!(limit("add_addr_accepted")));
        Config {
            path_manager,
            congestion: self
                .sysctl(&name("congestion_control"))
                .filter(|it| ["reno", "cubic"].contains(it))
                .unwrap_or("cubic")
                .into(),
            receive_buffer: self.buffer(&name("rmem"), base.receive_buffer),
            send_buffer: self.buffer(&name("wmem"), base.send_buffer),
            mtu: self.mtu,
            sack: self.flag(&name("sack"), true),
            timestamps: self.flag(&name("timestamps"), true),
            window_scaling: self.flag(&name("window_scaling"), true),
            ecn: self.sysctl(&name("ecn")) == Some("1"),
            accurate_ecn: self.sysctl(&name("ecn")) == Some("3"),
            checksum: self.flag("net.mptcp.checksum_enabled", false),
            limits: Limits {
                least_burst: self.number(&name("min_tso_segs"), base.limits.least_burst),
                syn_retries: self.number(&name("syn_retries"), base.limits.syn_retries),
                retries: self.number(&name("retries2"), base.limits.retries),
                base_mss: self.number(&name("base_mss"), base.limits.base_mss),
                ..base.limits
            },
            mtu_probing: match self.sysctl(&name("mtu_probing")) {
                Some("1") => MtuProbing::BlackHole,
                Some("2") => MtuProbing::On,
                _ => MtuProbing::Off,
            },
            multipath,
            ..base
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_settings() {
        let mut host = Host::default();
        for line in [
            "sysctl net.ipv4.tcp_wmem 4096 50000 4194304",
            "sysctl net.ipv4.tcp_timestamps 0",
            "ip addr add 192.168.0.3/16 dev tun0",
            "ip mptcp endpoint add 192.168.0.3 signal",
            "ip mptcp limits set add_addr_accepted 8 subflows 4",
        ] {
            host.take(&line.split(' ').collect::<Vec<_>>());
        }
        let config = host.config(true);
        assert_eq!(config.send_buffer.default, 50_000);
        assert!(!config.timestamps);
        assert_eq!(config.path_manager.parameters["subflows"], 4);
        assert_eq!(config.path_manager.parameters["flags"], "signal");
        let first = "192.168.0.2".parse().unwrap();
        assert_eq!(host.endpoints(first).len(), 2);
    }
}
