"""os-ken applications as controllers, in simulated time."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath import Recording, Scenario, ScenarioError, run
from polypath.engines import EngineError
from polypath.engines.openflow import Program

EXAMPLES = Path(__file__).parents[2] / "examples"
LEARNING = (EXAMPLES / "learning_switch.py").read_text()
HASHED = (EXAMPLES / "hashed_switches.py").read_text()
LINE = """
[link.as]
ends = ["a", "s1"]
rate = "10 Mbps"
delay = "1 ms"
[link.ss]
ends = ["s1", "s2"]
rate = "10 Mbps"
delay = "1 ms"
[link.sb]
ends = ["s2", "b"]
rate = "10 Mbps"
delay = "1 ms"
"""


def ruled(
    folder: Path, source: str, network: str = LINE, controller: str = "", switches: int = 2, delay: str = "10 ms"
) -> Recording:
    (folder / "app.py").write_text(source)
    named = "".join(f"[switch.s{number}]\n" for number in range(1, switches + 1))
    text = f"""
duration = "20 s"
seed = 1
[controller]
{controller or 'app = "app.py"'}
delay = "{delay}"
[defaults]
path_manager = {{ kind = "ndiffports", num_subflows = 6 }}
[host.a.interface.eth0]
address = "10.0.0.1"
[host.b.interface.eth0]
address = "10.0.0.2"
{named}{network}
[[application]]
kind = "bulk"
client = "a"
server = "b"
size = "200 kB"
start = "1 s"
"""
    (folder / "scenario.toml").write_text(text)
    return run(Scenario.load(folder / "scenario.toml"))


def test_a_learning_switch_runs_as_it_is_and_twice_the_same(tmp_path: Path) -> None:
    first = ruled(tmp_path, LEARNING)
    assert first.table("connection_ends")["state"].to_list() == ["finished"]
    assert first.table("connection_ends")["server_received_bytes"].to_list() == [200_000]
    # A SYN is asked about at both switches: to the controller and back, twice over 10 ms. So is what answers it.
    assert first.table("flow_setups")["delay_ns"].to_list()[0] == 20_000_000
    ends = first.table("switch_ends")
    assert ends["errors"].to_list() == [0, 0]
    assert all(count >= 3 for count in ends["flow_mods"].to_list())
    assert ruled(tmp_path, LEARNING).metadata.recording_sha256 == first.metadata.recording_sha256


def _between(middles: range) -> str:
    links = [("h1", '"a", "s1"'), ("h2", '"b", "s2"')]
    links += [(f"m{middle}e{edge}", f'"s{edge}", "s{middle}"') for middle in middles for edge in (1, 2)]
    lines = (f'[link.{name}]\nends = [{ends}]\nrate = "10 Mbps"\ndelay = "1 ms"\n' for name, ends in links)
    return "".join(lines)


def test_hashed_as_an_application_places_flows_as_the_built_in_routing(tmp_path: Path) -> None:
    network = _between(range(3, 7))
    app = ruled(tmp_path, HASHED, network, switches=6)
    built_in = ruled(tmp_path, "", network, 'routing = "hashed"\nmode = "reactive"', switches=6)
    assert app.table("switch_ends")["errors"].to_list() == [0] * 6
    used = [_used(recording) for recording in (app, built_in)]
    assert used[0] == used[1]
    assert len({link for link, _ in used[0]}) > 4, "several ways are taken"


def _used(recording: Recording) -> list[tuple[str, str]]:
    """The links, by direction, that carried anything."""
    ends = recording.table("link_ends")
    carried = ends.filter(ends["sent_packets"] > 0)
    return sorted(zip(carried["link"].cast(str).to_list(), carried["direction"].cast(str).to_list(), strict=True))


BROKEN = """
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, set_ev_cls
from os_ken.lib import hub
class Broken(OSKenApp):
    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def begin(self, event):
        raise ValueError("no such thing")
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (BROKEN, "app.py:9: ValueError: no such thing"),
        (
            BROKEN.replace("raise", "hub.spawn(self.later)\n    def later(self):\n        raise"),
            "app.py:11: ValueError",
        ),
        ("import nothing_of_this_name\n", "app.py:1: ModuleNotFoundError"),
        ("class NoApp:\n    pass\n", "app.py: TypeError: there is no class derived from"),
        ("import os\nos._exit(7)\n", "app.py: the application ended with exit code 7"),
    ],
)
def test_an_error_of_the_application_is_one_line_with_its_place(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(EngineError) as raised:
        ruled(tmp_path, source)
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


LOOPING = """
from os_ken.base.app_manager import OSKenApp
from os_ken.lib import hub
class Looping(OSKenApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        hub.spawn(self.later)
    def later(self):
        hub.sleep(1)
        while True:
            pass
"""


def test_a_second_interrupt_leaves_no_application(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program({"file": "app.py", "source": LOOPING, "modules": {}}, seed=1)
    process, wait = program._process, program._process.wait
    program._pipe.send((program.deadline_ns, []))

    def interrupted(_timeout: float | None = None) -> int:
        monkeypatch.setattr(process, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.close()
    assert process.returncode is not None


@pytest.mark.parametrize(
    ("controller", "said"),
    [
        ('app = "none.py"', "none.py"),
        ('app = "app.txt"', "app"),
        ('app = "app.py"\nrouting = "hashed"', "with 'app' there is no 'routing'"),
        ('app = "app.py"\nmode = "reactive"', "with 'app' there is no 'mode'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(tmp_path: Path, controller: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        ruled(tmp_path, "", controller=controller)


def test_without_os_ken_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"app\.py' needs os-ken, .*polypath\[openflow\]"):
        ruled(tmp_path, LEARNING)


def test_time_in_the_application_is_simulated_and_modules_beside_it_are_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    source = """
import time
import beside
from os_ken.base.app_manager import OSKenApp
from os_ken.lib import hub
class Clock(OSKenApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        hub.spawn(self.later)
    def later(self):
        hub.sleep(1.5)
        raise RuntimeError(f"{beside.NAME} {time.time()} {time.monotonic()}")
"""
    with pytest.raises(EngineError, match=r"app\.py:12: RuntimeError: beside 1\.5 1\.5"):
        ruled(tmp_path, source)


RETURNING = """
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3


class Returning(OSKenApp):
    OFP_VERSIONS = (ofproto_v1_3.OFP_VERSION,)

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def begin(self, event):
        switch = event.msg.datapath
        parser, constants = switch.ofproto_parser, switch.ofproto
        actions = [parser.OFPActionOutput(constants.OFPP_CONTROLLER, constants.OFPCML_NO_BUFFER)]
        apply = parser.OFPInstructionActions(constants.OFPIT_APPLY_ACTIONS, actions)
        switch.send_msg(parser.OFPFlowMod(datapath=switch, priority=0, match=parser.OFPMatch(), instructions=[apply]))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        switch, port = message.datapath, message.match["in_port"]
        parser, constants = switch.ofproto_parser, switch.ofproto
        switch.send_msg(
            parser.OFPPacketOut(
                datapath=switch,
                buffer_id=constants.OFP_NO_BUFFER,
                in_port=port,
                actions=[parser.OFPActionOutput(constants.OFPP_TABLE)],
                data=message.data,
            )
        )
"""


def test_an_application_that_holds_time_up_ends_the_run(tmp_path: Path) -> None:
    """Each packet goes back to the table that sends it to the controller, over control links that take no time."""
    with pytest.raises(EngineError, match=r"time stands still at 1\.\d+ s: .* give \[controller\] a rate or a delay"):
        ruled(tmp_path, RETURNING, delay="0 s")
