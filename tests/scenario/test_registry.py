"""The one place that asks the engine what it knows."""

import json
import sys

import pytest

from polypath import registry
from polypath.registry import RegistryError


def test_entries_by_name_in_the_engines_order() -> None:
    assert list(registry.entries("scheduler")) == ["default", "roundrobin", "redundant", "linux"]
    segments = registry.entries("scheduler")["roundrobin"].parameters[0]
    assert (segments.name, segments.kind, segments.default, segments.minimum) == ("num_segments", "integer", 1, 1)


def test_parameters_may_be_described_by_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [{"name": "red", "description": "d", "source": "s", "parameters": [{"name": "min"}]}]
    monkeypatch.setattr(registry, "read", lambda kind: json.dumps(models))
    assert registry.entries("queue")["red"].parameters[0].default is None


def test_defaults_are_filled_in() -> None:
    assert registry.resolve("scheduler", "roundrobin", {"num_segments": 3}) == {"num_segments": 3, "cwnd_limited": True}


@pytest.mark.parametrize(
    ("kind", "name", "given", "message", "hint"),
    [
        ("scheduler", "rr", {}, "unknown scheduler 'rr'; there is default, roundrobin, redundant, linux", None),
        ("congestion", "rno", {}, "unknown congestion control 'rno'", "reno"),
        ("congestion", "reno", {"a": 1}, "congestion control 'reno' has no parameter 'a'", None),
        (
            "congestion",
            "lia",
            {"variant": "mptcp"},
            "parameter 'variant' of congestion control 'lia' is one of rfc, mptcp.org, not 'mptcp'",
            "mptcp.org",
        ),
        (
            "path-manager",
            "fullmesh",
            {"num_subflows": 17},
            "parameter 'num_subflows' of path manager 'fullmesh' is at most 16, not 17",
            None,
        ),
        (
            "path-manager",
            "fullmesh",
            {"num_subflows": True},
            "parameter 'num_subflows' of path manager 'fullmesh' takes a whole number, not true",
            None,
        ),
    ],
)
def test_what_does_not_exist(
    kind: registry.Kind, name: str, given: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(RegistryError) as caught:
        registry.resolve(kind, name, given)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_module_that_is_not_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "polypath._core", None)
    registry.entries.cache_clear()
    with pytest.raises(RegistryError, match=r"the native module polypath\._core is not built; run `make build`"):
        registry.entries("scheduler")
