"""Whatever is put in a scenario's place, it is either one, or a ScenarioError says why not."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypath.scenario import Scenario, ScenarioError, describe_topology

VALUES = st.sampled_from(
    [
        *("1", "-1", "true", "nan", "[]", "{}", '""', '"x"', "1979-05-27", "9223372036854775807", "[[]]", "[{}]"),
        *('[1, "a"]', "{a = 1}", "{kind = {}}", '{kind = "bulk"}', '{kind = "lia"}', '"\\u0000"', '"::1"', '"r:"'),
        *('"20 Mbps"', '"1 s"', '"1 %"', '"client"', '"client:eth0"', '["r", "server"]', "[3]"),
    ]
)
KEYS = st.sampled_from(
    [
        *("rate", "queue", "loss", "scheduler", "ends", "interface", "address", "forward", "kind", "name", "client"),
        *("stack", "seed", "record", "event", "application", "link", "host", "router", "route", "defaults", "profile"),
        *("receive_buffer", "source", "port", '"a b"', '""', "a.b", "eth0"),
    ]
)
HEADS = st.sampled_from(
    ["[host]", "[host.x]", "[[event]]", "[[application]]", "[application]", "[link.q]", "[[route]]", "[[link]]"]
)
CHANGES = st.lists(
    st.tuples(st.floats(0, 0.999), st.one_of(HEADS, st.builds("{} = {}".format, KEYS, VALUES), st.text(max_size=9))),
    min_size=1,
    max_size=4,
)


def read(text: str) -> Scenario | ScenarioError:
    try:
        return Scenario.parse(text, "x")
    except ScenarioError as error:
        return error


def check_error(error: ScenarioError, text: str) -> None:
    last = text.count("\n") + 1
    for one in error.errors:
        assert "\n" not in str(one)
        assert one.line is None or 1 <= one.line <= last


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_lines_replaced_at_random(two_paths: str, changes: list[tuple[float, str]]) -> None:
    lines = two_paths.splitlines()
    for place, line in changes:
        lines[int(place * len(lines))] = line
    text = "\n".join(lines)
    found = read(text)
    if isinstance(found, ScenarioError):
        check_error(found, text)
    else:
        assert Scenario.parse(found.to_toml(), "y") == found
        assert describe_topology(found)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    found = read(text)
    if isinstance(found, ScenarioError):
        check_error(found, text)
