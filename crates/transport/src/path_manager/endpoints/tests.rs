use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::*;
use crate::host::Ways;
use crate::path_manager::REGISTRY;

fn address(net: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(10, net, 0, host).into()
}

/// A manager and what its view shows.
struct Bench {
    manager: Box<dyn PathManager>,
    client: bool,
    local: Vec<LocalAddress>,
    remote: Vec<RemoteAddress>,
    subflows: Vec<Pair>,
    first_ended: bool,
    denies_first: bool,
    taken: bool,
    ways: Ways,
    bound: bool,
}

impl Bench {
    fn new(parameters: serde_json::Value, addresses: u8) -> Self {
        let parameters = parameters.as_object().unwrap();
        let own = (0..addresses).map(|id| LocalAddress {
            id,
            address: address(id, 1),
            backup: false,
            up: true,
        });
        let mut bench = Self {
            manager: REGISTRY.make("endpoints", parameters).unwrap(),
            client: true,
            local: own.collect(),
            remote: Vec::new(),
            subflows: vec![FIRST],
            first_ended: false,
            denies_first: false,
            taken: true,
            ways: Ways::default(),
            bound: true,
        };
        bench.tell(0);
        bench
    }

    fn tell(&mut self, id: u8) {
        self.remote.push(RemoteAddress {
            id,
            address: address(id, 2),
            port: None,
        });
    }

    /// What it wants, in words; opened subflows are there at once.
    fn ask(&mut self, occasion: Occasion) -> Vec<String> {
        let of = |pair: &Pair| {
            let to = (address(pair.remote, 2), 80).into();
            (address(pair.local, 1), to)
        };
        let addresses: Vec<_> = self.subflows.iter().map(of).collect();
        let actions = self.manager.manage(&PmView {
            occasion,
            now: 0,
            clock: 0,
            client: self.client,
            opens: true,
            taken: self.taken,
            local: &self.local,
            remote: &self.remote,
            subflows: &self.subflows,
            further: self.subflows.len() - usize::from(!self.first_ended),
            addresses: &addresses,
            announced: &[],
            most_announced: usize::MAX,
            announcing: false,
            ways: &self.ways,
            bound: self.bound,
            denies_first: self.denies_first,
        });
        let worded = actions.into_iter().map(|action| match action {
            Action::Open(pair) | Action::OpenRouted(pair) => {
                self.subflows.push(pair);
                format!("{}-{}", pair.local, pair.remote)
            }
            Action::Announce { id, port: None } => format!("announce {id}"),
            Action::Announce {
                id,
                port: Some(port),
            } => format!("announce {id} at {port}"),
            Action::Priority { pair, backup } => {
                format!("{}-{} backup {backup}", pair.local, pair.remote)
            }
            other => format!("{other:?}"),
        });
        worded.collect()
    }

    fn received(&mut self, id: u8) -> Vec<String> {
        self.tell(id);
        self.ask(Occasion::AddressReceived(id))
    }

    fn ended(&mut self, subflow: usize) -> Vec<String> {
        let first = self.subflows.remove(subflow) == FIRST;
        self.first_ended |= first;
        self.ask(Occasion::SubflowEnded { first })
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn each_address_gets_one_subflow_within_the_limit() {
    let mut bench = Bench::new(json!({}), 5);
    assert_eq!(bench.ask(Occasion::Turn), ["1-0", "2-0"]);
    // A subflow that ended makes room for the next address, not for itself.
    assert_eq!(bench.ended(1), ["3-0"]);
}

#[test]
fn an_announced_address_is_left_alone_by_default() {
    let mut bench = Bench::new(json!({"subflows": 8}), 1);
    assert_eq!(bench.received(1), NOTHING);
}

#[test]
fn as_many_announced_addresses_are_accepted_as_the_limit_says() {
    let mut bench = Bench::new(
        json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}),
        2,
    );
    assert_eq!(bench.received(1), ["0-1"]);
    assert_eq!(bench.received(2), NOTHING);
}

#[test]
fn an_address_that_was_removed_makes_room_for_the_next() {
    let mut bench = Bench::new(
        json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}),
        1,
    );
    for _ in 0..3 {
        assert_eq!(bench.received(1), ["0-1"]);
        bench.subflows.pop();
        bench.remote.pop();
        let removed = Occasion::AddressRemoved {
            id: 1,
            closed: true,
        };
        assert_eq!(bench.ask(removed), NOTHING);
    }
}

#[test]
fn fullmesh_pairs_every_address_with_every_accepted_one() {
    let mut bench = Bench::new(
        json!({"flags": "fullmesh", "subflows": 8, "add_addr_accepted": 8}),
        2,
    );
    assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
    // In the order of the host's addresses, the first of which the bench has the connection not begin with.
    assert_eq!(bench.received(1), ["1-1", "0-1"]);
}

/// `fill_remote_addresses_fullmesh` finds the first subflow in its list after it has ended.
#[test]
fn fullmesh_replaces_no_first_subflow() {
    for (flags, again) in [("fullmesh", &NOTHING[..]), ("subflow", &["0-0"])] {
        let mut bench = Bench::new(json!({"flags": flags, "subflows": 8}), 2);
        assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
        bench.local[0].up = false;
        assert_eq!(bench.ended(0), NOTHING);
        assert_eq!(
            bench.ask(Occasion::AddressDown { id: 0, left: true }),
            NOTHING
        );
        bench.local[0].up = true;
        assert_eq!(bench.ask(Occasion::AddressUp(0)), again, "{flags}");
    }
}

#[test]
fn signal_announces_one_address_at_a_time() {
    let mut bench = Bench::new(json!({"flags": "signal"}), 3);
    bench.client = false;
    assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), ["announce 2"]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
}

/// `mptcp_pm_nl_check_work_pending` finds none where the limit is reached, and is not asked again until a subflow ends.
#[test]
fn at_the_limit_of_subflows_one_address_is_announced() {
    let mut bench = Bench::new(json!({"flags": "signal", "subflows": 0}), 3);
    assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
}

#[test]
fn an_attempt_of_the_server_uses_up_an_address_that_was_to_be_announced() {
    let mut bench = Bench::new(json!({"flags": "signal subflow", "subflows": 8}), 3);
    bench.client = false;
    assert_eq!(bench.ask(Occasion::Turn), ["announce 1", "1-0", "2-0"]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
}

#[test]
fn a_first_address_of_a_backup_is_told_once() {
    let mut bench = Bench::new(json!({"flags": "subflow"}), 2);
    bench.local[0].backup = true;
    assert_eq!(bench.ask(Occasion::Turn), ["0-0 backup true", "1-0"]);
    assert_eq!(bench.ask(Occasion::SubflowEstablished), NOTHING);
}

#[test]
fn a_first_address_of_a_backup_is_told_before_any_address_is_used() {
    let mut bench = Bench::new(
        json!({"flags": "none", "subflows": 1, "add_addr_accepted": 1}),
        2,
    );
    bench.local[0].backup = true;
    assert_eq!(bench.ask(Occasion::Turn), NOTHING);
    assert_eq!(bench.received(1), ["0-0 backup true", "0-1"]);
    assert_eq!(bench.received(2), NOTHING);
}

#[test]
fn before_the_program_takes_a_connection_attempts_fail_and_use_up_addresses() {
    let mut bench = Bench::new(json!({"flags": "signal subflow", "subflows": 1}), 4);
    bench.client = false;
    bench.taken = false;
    assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
    bench.taken = true;
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
}

/// `mptcp_pm_nl_append_new_local_addr`
#[test]
fn an_endpoint_that_comes_back_is_the_last_one_with_a_port_the_first() {
    for (port, next) in [("", "announce 2"), (" port 80", "announce 1 at 80")] {
        let named = [format!("10.1.0.1 signal{port}"), "10.2.0.1 signal".into()];
        let mut bench = Bench::new(json!({"endpoints": named, "subflows": 0}), 3);
        assert_eq!(bench.ask(Occasion::Turn).len(), 1);
        for up in [false, true] {
            bench.local[1].up = up;
            let occasion = match up {
                true => Occasion::AddressUp(1),
                false => Occasion::AddressDown { id: 1, left: true },
            };
            let wanted = bench.ask(occasion);
            assert_eq!(wanted.first().map(String::as_str), up.then_some(next));
        }
    }
}

/// `fill_remote_addr` knows the first subflow's, whatever the peer withdrew.
#[test]
fn a_first_address_that_the_peer_withdrew_is_opened_to() {
    let mut bench = Bench::new(json!({"subflows": 1}), 3);
    assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
    bench.remote.clear();
    bench.subflows.clear();
    bench.first_ended = true;
    assert_eq!(bench.ask(Occasion::SubflowEnded { first: false }), ["2-0"]);
}

/// `has_subflow_daddr` asks for subflows alone.
#[test]
fn an_address_that_is_told_of_again_is_opened_to_unless_a_subflow_leads_there() {
    let parameters = json!({"flags": "none", "subflows": 8, "add_addr_accepted": 8});
    let mut bench = Bench::new(parameters, 1);
    assert_eq!(bench.received(1), ["0-1"]);
    assert_eq!(bench.ask(Occasion::AddressReceived(1)), NOTHING);
    bench.subflows.pop();
    assert_eq!(bench.ask(Occasion::AddressReceived(1)), ["0-1"]);
}

/// `mptcp_pm_nl_rm_addr` does nothing where no announced address is accepted.
#[test]
fn a_removal_of_what_was_not_accepted_accepts_nothing() {
    let parameters = json!({"flags": "subflow", "subflows": 1, "add_addr_accepted": 1});
    let mut bench = Bench::new(parameters, 2);
    assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
    assert_eq!(bench.received(1), ["0-1"]);
    for id in [1, 2] {
        bench.subflows.pop();
        let removed = Occasion::AddressRemoved { id, closed: true };
        assert_eq!(bench.ask(removed), NOTHING);
    }
    assert_eq!(bench.received(3), ["0-3"]);
}

/// `mptcp_pm_subflow_check_next`
#[test]
fn the_end_of_the_first_subflow_wakes_none_who_has_nothing_to_do() {
    let mut bench = Bench::new(json!({"subflows": 1}), 3);
    assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
    bench.local[0].backup = true;
    assert_eq!(bench.ended(0), NOTHING);
    assert_eq!(bench.ended(0), ["2-0"]);
}

/// `mptcp_pm_add_addr_c_flag_case`, `mptcp_mpc_endpoint_setup`
#[test]
fn without_tasks_a_first_address_of_a_backup_is_told_where_the_peer_denies_joins_to_its_own() {
    for denies_first in [false, true] {
        let mut bench = Bench::new(json!({}), 2);
        bench.manager = without_tasks();
        bench.local[0].backup = true;
        bench.denies_first = denies_first;
        assert_eq!(bench.ask(Occasion::Turn), NOTHING);
        let told: &[&str] = if denies_first {
            &["0-0 backup true"]
        } else {
            &[]
        };
        assert_eq!(bench.received(1), told);
    }
}

/// `__lookup_addr`
#[test]
fn a_backup_with_a_port_of_its_own_is_one_at_that_port() {
    let named = json!({"endpoints": ["10.1.0.1 signal port 80", "10.2.0.1 signal"]});
    let manager = Bench::new(named, 3).manager;
    let ranks = |net, port| manager.ranks(address(net, 1), port);
    assert!(ranks(1, None) && ranks(1, Some(80)) && !ranks(1, Some(81)));
    assert!(ranks(2, Some(81)) && !ranks(3, None));
}

/// `fill_remote_addresses_fullmesh` takes addresses from subflows, also those that the peer never told of.
#[test]
fn fullmesh_leads_to_wherever_a_subflow_does() {
    let mut bench = Bench::new(json!({"flags": "fullmesh", "subflows": 8}), 2);
    bench.local[1].up = false;
    assert_eq!(bench.ask(Occasion::Turn), NOTHING);
    bench.subflows.push(Pair {
        local: 0,
        remote: 5,
    });
    bench.local[1].up = true;
    assert_eq!(bench.ask(Occasion::AddressUp(1)), ["1-0", "1-5"]);
}

/// `__lookup_addr` compares ports.
#[test]
fn a_first_address_with_a_port_of_its_own_is_announced_by_another_number() {
    let named = json!({"endpoints": ["10.0.0.1 signal port 80", "10.1.0.1 signal"]});
    let mut bench = Bench::new(named, 2);
    assert_eq!(bench.ask(Occasion::Turn), ["announce 2 at 80"]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), ["announce 1"]);
}

/// `mptcp_pm_nl_fullmesh`
#[test]
fn an_endpoint_that_is_for_all_addresses_from_now_on_opens_to_all() {
    let parameters = json!({"flags": "subflow", "subflows": 8, "add_addr_accepted": 8});
    let mut bench = Bench::new(parameters, 2);
    assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
    assert_eq!(bench.received(1), ["0-1"]);
    for (fullmesh, opened) in [(true, &["1-0", "1-1"][..]), (false, &["1-0"])] {
        assert!(bench.manager.set_fullmesh(address(1, 1), fullmesh));
        assert!(!bench.manager.set_fullmesh(address(1, 1), fullmesh));
        bench.subflows.retain(|pair| pair.local != 1);
        assert_eq!(bench.ask(Occasion::EndpointChanged(1)), opened);
    }
}

/// `mptcp_pm_nl_set_flags`: what is not for subflows opens none, and what is announced is not for all.
#[test]
fn other_endpoints_open_nothing_by_a_change() {
    for flags in ["signal", "signal subflow", "none"] {
        let mut bench = Bench::new(json!({"flags": flags}), 2);
        assert!(!bench.manager.set_fullmesh(address(1, 1), true), "{flags}");
    }
}

/// `mptcp_pm_flush_addrs_and_subflows`; interfaces that come back bring theirs.
#[test]
fn no_endpoint_is_left_after_a_flush() {
    let mut bench = Bench::new(json!({"flags": "signal", "subflows": 1}), 3);
    assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
    let all = [0, 1, 2].map(|net| address(net, 1));
    assert_eq!(bench.manager.flush(&all), [1]);
    assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
    assert!(!bench.manager.ranks(all[1], None));
    bench.local[1].up = false;
    let down = Occasion::AddressDown { id: 1, left: false };
    assert_eq!(bench.ask(down), NOTHING);
    bench.local[1].up = true;
    assert_eq!(bench.ask(Occasion::AddressUp(1)), ["announce 1"]);
    assert_eq!(bench.manager.flush(&all), [1]);
}

/// `mptcp_pm_remove_announced`, `mptcp_nl_add_subflow_or_signal_addr`
#[test]
fn a_first_address_with_a_port_of_its_own_is_announced_again_when_it_is_back() {
    let named = json!({"endpoints": ["10.0.0.1 signal port 80"], "subflows": 8});
    let mut bench = Bench::new(named, 2);
    for up in [true, false, true] {
        bench.local[0].up = up;
        let occasion = match up {
            true => Occasion::AddressUp(0),
            false => Occasion::AddressDown { id: 0, left: true },
        };
        let wanted = bench.ask(occasion);
        assert_eq!(!wanted.is_empty(), up);
        assert!(wanted.iter().all(|it| it == "announce 2 at 80"));
    }
}

#[test]
fn what_has_no_way_counts_as_on_the_link_of_a_subflow_that_is_bound() {
    let asked = |bound: bool, up: bool| {
        let mut bench = Bench::new(json!({"subflows": 1}), 3);
        let leading = vec![address(0, 1), address(2, 1)];
        bench.ways = Ways::new([(address(0, 2), leading)].into());
        (bench.bound, bench.local[1].up) = (bound, up);
        bench.ask(Occasion::Turn)
    };
    // The attempt takes the only place, though nobody will answer.
    assert_eq!(asked(true, true), ["1-0"]);
    assert_eq!(asked(false, true), ["2-0"]);
    assert_eq!(asked(true, false), ["2-0"]);
}

#[test]
fn an_endpoint_that_comes_to_a_connection_without_any_is_known_as_its_first_address() {
    let mut bench = Bench::new(json!({"flags": "signal subflow"}), 2);
    bench.local[0].backup = true;
    let all: Vec<IpAddr> = bench.local.iter().map(|own| own.address).collect();
    bench.manager.flush(&all);
    // Flushed before the connection began, as none of them went away since.
    assert_eq!(bench.ask(Occasion::Turn), NOTHING);
    bench.local[0].up = false;
    let gone = Occasion::AddressDown { id: 0, left: false };
    assert_eq!(bench.ask(gone), NOTHING);
    bench.local[0].up = true;
    assert_eq!(bench.ask(Occasion::AddressUp(0)), ["0-0 backup true"]);
}
