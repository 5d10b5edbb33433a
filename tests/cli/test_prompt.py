"""What the shell says of lines that make no sense, without a network behind it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from polypath.cli.prompt import Prompt
from polypath.engines.namespaces.session import Session
from polypath.scenario import Scenario

TEXT = """
duration = "4 s"
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "20 Mbps", delay = "10 ms" }
application = [{ kind = "bulk" }]
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("link wifi loss 200%", "link wifi loss: a share cannot be more than 100 %: '200%'"),
        ("link wifi rate 5", "link wifi rate: '5' has no unit; write for example \"20 Mbps\""),
        ("link wifi up delay 5ps", "link wifi delay: unknown unit 'ps' in '5ps'; did you mean 's'?"),
        ("link wfi up", "unknown link 'wfi'; did you mean 'wifi'?"),
        ("link wifi forward", "link: nothing changes; give up, down, rate, delay or loss"),
        ("interface client:eth7 down", "unknown interface 'client:eth7'; did you mean 'client:eth0'?"),
    ],
)
def test_what_is_wrong_with_a_change_names_what_was_typed(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario.parse(TEXT, "small.toml")
    changes: list[Any] = []
    session = SimpleNamespace(plan=scenario.plan().view, now_ns=0, change=lambda number, event: changes.append(event))
    prompt = Prompt(cast(Session, session), scenario, "linux", mptcp=False, asked=False)
    prompt.onecmd(line)
    assert capsys.readouterr().err == f"{said}\n"
    assert changes == []
    prompt.onecmd("link wifi loss 2%")
    assert len(changes) == 1
