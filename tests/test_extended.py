"""The command line, the schema, scenarios and the documentation know what the registries have, made of them alone.

The registries are those of `tests/extended.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError, create_model
from typer.testing import CliRunner

from polypath import registry
from polypath.cli import app
from polypath.scenario import declared, json_schema, models
from polypath.scenario.network import Channel

from .extended import DRIP, LIFO, LIFO_PLANNED, NAPPED, NTH, NTH_PLANNED, described, made

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def extended(
    replace_registry: Callable[[Callable[[registry.Kind], str]], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The package with these registries in place of its own."""
    read = registry.read
    declared.tables.cache_clear()
    replace_registry(lambda kind: described(kind, read))
    # The native module has its own.
    monkeypatch.setattr(registry, "fault", lambda kind, name, given: None)
    yield
    declared.tables.cache_clear()


def page(monkeypatch: pytest.MonkeyPatch) -> str:
    """What the documentation says of all algorithms."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return str(__import__("generate").algorithms())


@pytest.mark.usefixtures("extended")
def test_the_command_the_schema_and_the_page_know_them(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = CliRunner().invoke(app, ["algorithms"]).stdout
    for text in (listed, json.dumps(json_schema()), page(monkeypatch)):
        assert "first-ready" in text
        assert "aimd" in text
    assert "lifo" in listed
    assert "How long a packet may have waited" in page(monkeypatch)
    assert registry.resolve("scheduler", "first-ready", {}) == {"skip": 0}
    with pytest.raises(registry.RegistryError, match="at most 9"):
        registry.resolve("scheduler", "first-ready", {"skip": 10})
    with pytest.raises(registry.RegistryError) as wrong:
        registry.find("scheduler", "first-redy")
    assert wrong.value.hint == "first-ready"
    listed = CliRunner().invoke(app, ["algorithms", "application"]).stdout
    assert "drip" in listed
    assert "drop = 100 B" in listed


@pytest.mark.usefixtures("extended")
def test_a_scenario_takes_a_new_queue_discipline_and_loss_model() -> None:
    tables = create_model("Tables", __base__=Channel)
    channel = tables.model_validate({"queue": LIFO, "loss": NTH})
    assert channel.queue is not None
    assert channel.loss is not None
    assert (channel.queue.planned(), channel.loss.planned()) == (LIFO_PLANNED, NTH_PLANNED)
    written = {"kind": "lifo", "limit": "100 packets", "patience": "20 ms"}
    assert models.Discipline.written(LIFO_PLANNED) == written
    with pytest.raises(ValidationError, match="every"):
        tables.model_validate({"loss": {"kind": "every-nth", "every": 0}})
    with pytest.raises(ValidationError, match="required"):
        tables.model_validate({"loss": {"kind": "every-nth"}})


def test_a_scenario_takes_a_new_application_and_a_new_setting_of_the_transport() -> None:
    drip, bulk = DRIP["application"][0], NAPPED["application"][0]
    wrong = {
        "application 1.count: must be at least 1, not 0": {**DRIP, "application": [drip | {"count": 0}]},
        "application 1.told: 'nobdy' is not nobody or everybody; did you mean 'nobody'?": {
            **DRIP,
            "application": [drip | {"told": "nobdy"}],
        },
        "unknown key 'dorp' in application 1; did you mean 'drop'?": {**DRIP, "application": [drip | {"dorp": "1 kB"}]},
        "application 1: unknown kind 'drop'; did you mean 'drip'?": {**DRIP, "application": [drip | {"kind": "drop"}]},
        "defaults.naps: must be at most 9, not 10": {**NAPPED, "defaults": {"naps": 10}},
        "unknown key 'nap' in defaults; did you mean 'naps'?": {**NAPPED, "defaults": {"nap": 1}},
        "'naps' changes nothing for an application over quic; leave it out": {
            **NAPPED,
            "application": [bulk | {"transport": "quic", "stack": {"naps": 2}}],
        },
    }
    found = made(DRIP, NAPPED, *wrong.values())
    assert found["wrong"] == list(wrong)
    assert found["again"] == found["plans"]
    dripping, napping = map(json.loads, found["plans"])
    [planned] = dripping["applications"]
    assert planned["transport"] == "mptcp"
    work = {"drop_bytes": 2000, "gap_ns": 20_000_000, "count": 3, "told": "nobody", "duration_ns": 8_000_000_000}
    assert planned["work"] == {"kind": "drip", **work}
    client, server = napping["nodes"]
    assert client["stack"]["naps"] == 4
    assert "naps" not in server["stack"]
    assert "Naps of whoever acknowledges." in json.dumps(found["schema"])
    table = found["schema"]["$defs"]["Drip"]
    assert table["required"] == ["kind", "gap"]
    assert table["properties"]["told"]["enum"] == ["nobody", "everybody"]
    assert table["properties"]["drop"]["description"] == "Bytes of a drop."
