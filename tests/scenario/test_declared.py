"""Tables that are made from the engine's registry."""

import pickle
from typing import Any

import pytest

from polypath import registry
from polypath.scenario import Scenario, ScenarioError, declared
from polypath.scenario.traffic import Application

HOSTS: dict[str, Any] = {
    "host": {"client": {}, "server": {}},
    "link": {"path": {"ends": ["client", "server"], "rate": "10 Mbps"}},
    "duration": "9 s",
}


def work(**application: Any) -> Any:
    return Scenario.from_data({**HOSTS, "application": [application]}).plan().view["applications"][0]["work"]


def test_no_setting_is_called_as_what_every_application_has() -> None:
    for entry in registry.entries("application").values():
        assert not {each.name for each in entry.parameters} & {"kind", *Application.model_fields}, entry.name


#: A rate may stand for the interval of messages; a scenario names a link, and has bounds for weights.
_OTHERWISE = {("messages", "interval"), ("tunnel", "link"), ("tunnel", "weights")}


def test_a_kind_has_the_settings_of_its_entry() -> None:
    for name, table in declared.tables(Application).items():
        entry = registry.find("application", name)
        assert table.__doc__ == f"{entry.description}."
        for each in entry.parameters:
            if (name, each.name) not in _OTHERWISE:
                field = table.model_fields[each.name]
                assert (field.description, field.is_required()) == (each.description, each.required)


def test_what_is_left_out_is_the_default_or_the_rest_of_the_run() -> None:
    assert work(kind="cbr", rate="1 Mbps", start="2 s") == {
        "kind": "cbr",
        "rate_bps": 1_000_000,
        "packet_bytes": 1200,
        "duration_ns": 7_000_000_000,
    }
    assert work(kind="cbr", rate="1 Mbps", duration="1 s")["duration_ns"] == 1_000_000_000


def test_a_plan_has_what_is_seldom_given_only_where_it_is() -> None:
    usual = {"kind": "bulk", "size_bytes": 1000, "duration_ns": None, "reverse": False}
    assert work(kind="bulk", size="1 kB") == usual
    assert work(kind="bulk", size="1 kB", reverse_size="0 B") == {**usual, "reverse_bytes": 0}


def test_the_rate_of_messages_is_their_interval() -> None:
    assert work(kind="messages", size="1 kB", rate="8 Mbps")["interval_ns"] == 1_000_000
    assert work(kind="messages", size="1 kB", interval="5 ms")["interval_ns"] == 5_000_000


def test_a_word_that_looks_like_a_number_needs_no_quotes() -> None:
    assert work(kind="fetch", size="1 kB", tls=1.3)["tls"] == work(kind="fetch", size="1 kB", tls="1.3")["tls"] == "1.3"


def test_it_is_pickled_by_its_kind() -> None:
    queue = {"kind": "codel", "target": "7 ms"}
    link = {**HOSTS["link"]["path"], "queue": queue}
    page = {"kind": "page", "objects": [{"name": "a", "size": "1 kB"}]}
    data = {**HOSTS, "link": {"path": link}, "application": [page, {"kind": "bulk"}, {"kind": "ping"}]}
    scenario = Scenario.from_data(data)
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy == scenario
    assert copy.plan() == scenario.plan()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "cbr"}, "application 1: 'rate' is missing"),
        ({"kind": "cbr", "rate": "1 Mbps", "transport": "tcp"}, "application 1.transport: 'tcp' is not udp"),
        ({"kind": "fetch", "size": "0 B"}, "application 1.size: a size must be greater than zero: '0 B'"),
        ({"kind": "fetch", "size": "1 kB", "count": 0}, "application 1.count: must be at least 1, not 0"),
        (
            {"kind": "fetch", "size": "1 kB", "tls": 1.4},
            "application 1.tls: 1.4 is not 1.2 or 1.3; did you mean '1.3'?",
        ),
        ({"kind": "ping", "intreval": "1 s"}, "unknown key 'intreval' in application 1; did you mean 'interval'?"),
    ],
)
def test_what_a_kind_does_not_take(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as wrong:
        work(**given)
    assert str(wrong.value) == message
