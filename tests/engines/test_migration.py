"""A client of QUIC moves to another interface when the scenario says so (RFC 9000 section 9)."""

import polars as pl
import pytest
from tests.engines.test_quic import TEXT, only

from polypath.engines import get
from polypath.results import Recording, metrics, notes
from polypath.results.changes import changes
from polypath.scenario import Scenario

BULK = 'kind = "bulk"\nsize = "2 MB"\nreverse = {reverse}\ntransport = "{transport}"'
EVENT = """
[[event]]
at = "500 ms"
interface = "client:{source}"
migrate_to = "{to}"
"""


def run(
    transport: str = "quic", *, source: str = "eth0", to: str = "eth1", reverse: str = "true", at: str = "500 ms"
) -> Recording:
    application = BULK.format(transport=transport, reverse=reverse)
    more = EVENT.format(source=source, to=to).replace("500 ms", at)
    return get("sim").run(Scenario.parse(TEXT.format(application=application, more=more, defaults=""), "x.toml").plan())


def told(recording: Recording, kind: str) -> list[tuple[int, str, str]]:
    rows = recording.table("events").filter(kind=kind).select(pl.col("time_ns") // 1_000_000, "host", "detail").rows()
    return [(time, host, detail.partition(":")[0]) for time, host, detail in rows]


def sent(recording: Recording, link: int, since_ns: int) -> int:
    """Bytes over both directions of a link from then on."""
    rows = recording.table("links").filter((pl.col("link") == link) & (pl.col("time_ns") >= since_ns))
    ends = rows.group_by("direction").agg((pl.col("sent_bytes").max() - pl.col("sent_bytes").min()).alias("sent"))
    return int(ends["sent"].sum())


@pytest.mark.parametrize("reverse", ["true", "false"])
def test_everything_goes_over_the_other_link_from_then_on(reverse: str) -> None:
    recording = run(reverse=reverse)
    assert only(recording).finished
    assert only(recording).bytes == 2_000_000
    # What the server had sent when the client's first packet from there came still arrives over the former link.
    assert sent(recording, 0, 700_000_000) < 5_000
    assert sent(recording, 1, 700_000_000) > 500_000
    assert told(recording, "interface-changed") == [(500, "client", "eth0 migrates to eth1")]
    assert told(recording, "path-migrated") == [(500, "client", "10.0.1.1"), (521, "server", "10.0.1.1")]
    connection = only(recording)
    said = list(notes.of(recording, connection, metrics.subflows(recording, connection)))
    assert said[-1].endswith(": its figures are also of 10.0.0.1 until 0.5 s")
    (change,) = changes(recording)
    assert (change.time_s, change.text) == (0.5, "client eth0: migrates to eth1")


def test_both_windows_begin_again() -> None:
    recording = run()
    moved = recording.table("events").filter(kind="path-migrated")["time_ns"].to_list()
    samples = recording.table("subflows").filter(pl.col("time_ns").is_in(moved))
    assert samples.filter(side="client", time_ns=moved[0])["cwnd_packets"].to_list()[-1] == 10
    assert samples.filter(side="server", time_ns=moved[1])["cwnd_packets"].to_list() == [10]


def test_a_path_of_several_moves_and_the_others_stay() -> None:
    recording = run("mpquic", source="eth1", to="eth0")
    connection = only(recording)
    assert connection.finished
    paths = metrics.subflows(recording, connection)
    assert [path.interface for path in paths] == ["eth0", "eth0"]
    assert sent(recording, 1, 800_000_000) < 5_000


def test_a_migration_before_the_handshake_ends_is_refused() -> None:
    recording = run(at="10 ms")
    assert only(recording).finished
    assert told(recording, "path-migrated") == []
    assert told(recording, "migration-refused") == [(10, "client", "the handshake is not confirmed")]


def test_equal_runs_are_equal() -> None:
    assert run().metadata.recording_sha256 == run().metadata.recording_sha256


@pytest.mark.parametrize("noq", [("client", "server"), ("client",), ("server",)])
def test_noq_moves_and_follows(noq: tuple[str, ...]) -> None:
    text = TEXT.format(
        application=BULK.format(transport="quic", reverse="true"),
        more=EVENT.format(source="eth0", to="eth1"),
        defaults="",
    )
    settings = [f"host.{host}.stack=noq" for host in noq]
    recording = get("sim").run(Scenario.parse(text, "x.toml").with_settings(settings).plan())
    assert only(recording).finished
    assert only(recording).bytes == 2_000_000
    assert sent(recording, 0, 800_000_000) < 5_000
    assert [host for _, host, _ in told(recording, "path-migrated")] == ["client", "server"]
