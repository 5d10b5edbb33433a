//! The host's endpoints: what each is for, and their order.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use polypath_settings::choice;

use crate::path_manager::{LocalAddress, unused_id};

/// What an address is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub subflow: bool,
    pub fullmesh: bool,
    pub signal: bool,
}

choice! {
    /// What all addresses of a host are for.
    Task {
        Subflow = "subflow",
        FullMesh = "fullmesh",
        Signal = "signal",
        SignalSubflow = "signal subflow",
        None = "none",
    }
}

impl Task {
    pub(super) fn flags(self) -> Flags {
        Flags {
            subflow: matches!(self, Self::Subflow | Self::FullMesh | Self::SignalSubflow),
            fullmesh: self == Self::FullMesh,
            signal: matches!(self, Self::Signal | Self::SignalSubflow),
        }
    }
}

impl Flags {
    /// It has a task.
    pub fn any(self) -> bool {
        self.subflow || self.fullmesh || self.signal
    }
}

/// An address that is named as an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub address: IpAddr,
    pub flags: Flags,
    /// Where joins are taken that its announcement leads to, if not at the connection's port.
    pub port: Option<u16>,
}

/// From what `ip mptcp endpoint add` is given.
impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let address = words.next().unwrap_or_default();
        let address = address
            .parse()
            .map_err(|_| format!("'{address}' is no IP address"))?;
        let mut found = Self {
            address,
            flags: Flags::default(),
            port: None,
        };
        while let Some(word) = words.next() {
            match word {
                "subflow" => found.flags.subflow = true,
                "signal" => found.flags.signal = true,
                "fullmesh" => found.flags.fullmesh = true,
                "port" => {
                    let port = words.next().unwrap_or_default();
                    let number = port.parse().ok().filter(|&number| number > 0);
                    found.port = Some(number.ok_or_else(|| format!("'{port}' is no port"))?);
                }
                other => {
                    return Err(format!(
                        "'{other}' is none of subflow, signal, fullmesh, port"
                    ));
                }
            }
        }
        let Flags {
            subflow,
            fullmesh,
            signal,
        } = found.flags;
        if signal && fullmesh {
            return Err("an address is not both for signal and for fullmesh".into());
        }
        if found.port.is_some() && (subflow || !signal) {
            return Err("a port is of an address for signal and not for subflow".into());
        }
        Ok(found)
    }
}

/// An endpoint that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    /// Its address's id, or its own number.
    pub id: u8,
    pub address: IpAddr,
    pub flags: Flags,
    pub port: Option<u16>,
}

/// Those that are there: they leave with their interfaces and come back with them, behind the others, but those with a port in front
/// (`mptcp_pm_nl_append_new_local_addr`).
#[derive(Debug)]
pub(super) struct List {
    /// Of every address, where none is named.
    all: Flags,
    named: Vec<Named>,
    /// What was asked for since of flag `fullmesh`.
    changed: Vec<(IpAddr, bool)>,
    /// No endpoints, until their interfaces come back.
    flushed: Vec<IpAddr>,
    present: Vec<Endpoint>,
}

impl List {
    pub fn new(all: Flags, named: Vec<Named>) -> Self {
        Self {
            all,
            named,
            changed: Vec::new(),
            flushed: Vec::new(),
            present: Vec::new(),
        }
    }

    /// Takes over which addresses of the host are up.
    pub fn follow(&mut self, local: &[LocalAddress]) {
        let up = |address: IpAddr| {
            let mut own = local.iter();
            own.find(|own| own.address == address && own.up)
        };
        self.present.retain(|it| up(it.address).is_some());
        self.flushed.retain(|&address| up(address).is_some());
        let known = |list: &Self, address: IpAddr| {
            let mut present = list.present.iter();
            present.any(|it| it.address == address) || list.flushed.contains(&address)
        };
        if self.named.is_empty() {
            let come = local.iter().filter(|own| own.up);
            let mut come: Vec<_> = come.filter(|own| !known(self, own.address)).collect();
            // In the order of the host's interfaces, whichever of its addresses the connection began with.
            come.sort_by_key(|own| match own.id {
                0 => unused_id(local),
                id => id,
            });
            for own in come {
                self.present.push(Endpoint {
                    id: own.id,
                    address: own.address,
                    flags: self.flags_of(own.address),
                    port: None,
                });
            }
        }
        for place in 0..self.named.len() {
            let named = self.named[place];
            let Some(own) = up(named.address).filter(|_| !known(self, named.address)) else {
                continue;
            };
            let endpoint = Endpoint {
                id: self.number(own, local),
                address: named.address,
                flags: self.flags_of(named.address),
                port: named.port,
            };
            match endpoint.port {
                None => self.present.push(endpoint),
                Some(_) => self.present.insert(0, endpoint),
            }
        }
    }

    /// The number of an address's endpoint, which may have left: on the first address and with a port it is another than the connection's
    /// (`__lookup_addr`).
    pub fn number(&self, of: &LocalAddress, local: &[LocalAddress]) -> u8 {
        let ported = |it: &Named| it.address == of.address && it.port.is_some();
        match of.id {
            0 if self.named.iter().any(ported) => unused_id(local),
            id => id,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Endpoint> {
        self.present.iter()
    }

    /// How many are for something (`endp_subflow_max`, `endp_signal_max`).
    pub fn count(&self, has: impl Fn(&Flags) -> bool) -> usize {
        self.iter().filter(|it| has(&it.flags)).count()
    }

    /// Whether an address is an endpoint with a task, while it is up. Others are no endpoints, or such as engine `linux` has for their
    /// priority alone.
    pub fn manages(&self, address: IpAddr) -> bool {
        match self.named.is_empty() {
            _ if self.flushed.contains(&address) => false,
            true => self.all.any(),
            false => self.named.iter().any(|it| it.address == address),
        }
    }

    /// Whether an address is an endpoint, while it is up, or with a port the one of subflows there: an endpoint with another port is not
    /// (`__lookup_addr`).
    pub fn names(&self, address: IpAddr, port: Option<u16>) -> bool {
        let suits = |it: &Named| {
            it.address == address && (it.port.is_none() || port.is_none() || it.port == port)
        };
        let named = self.named.is_empty() || self.named.iter().any(suits);
        named && !self.flushed.contains(&address)
    }

    /// What an address is for, while it is up.
    pub fn flags_of(&self, address: IpAddr) -> Flags {
        let mut named = self.named.iter();
        let mut flags = match named.find(|it| it.address == address) {
            Some(named) => named.flags,
            None if self.named.is_empty() => self.all,
            None => return Flags::default(),
        };
        let mut changed = self.changed.iter();
        if let Some(&(_, fullmesh)) = changed.find(|(of, _)| *of == address) {
            flags.fullmesh = fullmesh;
        }
        flags
    }

    /// Gives an endpoint flag `fullmesh` or takes it away, which one for signal is not given (`mptcp_pm_nl_set_flags`). True: that changed what
    /// subflows are opened from it.
    pub fn set_fullmesh(&mut self, address: IpAddr, fullmesh: bool) -> bool {
        let flags = self.flags_of(address);
        if !flags.any() || flags.fullmesh == fullmesh || (fullmesh && flags.signal) {
            return false;
        }
        self.changed.retain(|(of, _)| *of != address);
        self.changed.push((address, fullmesh));
        let present = self.present.iter_mut();
        for endpoint in present.filter(|it| it.address == address) {
            endpoint.flags.fullmesh = fullmesh;
        }
        flags.subflow && !self.flushed.contains(&address)
    }

    /// These addresses are endpoints no more.
    pub fn flush(&mut self, addresses: &[IpAddr]) {
        self.present.retain(|it| !addresses.contains(&it.address));
        self.flushed.extend_from_slice(addresses);
    }

    /// Whether an endpoint has this port for itself (`mptcp_pm_nl_create_listen_socket`).
    pub fn listens(&self, at: SocketAddr) -> bool {
        let own = |it: &Named| it.address == at.ip() && it.port == Some(at.port());
        self.named.iter().any(own) && !self.flushed.contains(&at.ip())
    }
}
