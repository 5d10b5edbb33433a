"""A scenario names any file, and no error says what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.scenario import Scenario, ScenarioError

NETWORK = """
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
[[application]]
kind = "bulk"
"""


def har(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"entries": list(entries)}})


SECRET = "hunter2"
FILES = {
    "trace": ('rate = { trace = "file" }', [SECRET, f"5\n{SECRET}", f"-{SECRET}"]),
    "conditions": (
        'rate = "1 Mbps"\nconditions = { csv = "file" }',
        [SECRET, f"time_s,{SECRET}\n0,1", f"time_s,loss\n0,{SECRET}", f'time_s,loss\n"{SECRET}"x,1', f"{SECRET}\0"],
    ),
}
PAGES = {
    "csv": [
        f"{SECRET}\n",
        f"object,{SECRET}\n",
        f"object,size_bytes\n{SECRET},{SECRET}\n",
        f"object,size_bytes\n{SECRET},1\n{SECRET},1\n",
        f"object,size_bytes,after\n{SECRET},1,{SECRET}\n",
        f"object,size_bytes,after\n{SECRET},1,{SECRET}2\n",
        f"object,size_bytes,think_ms\n{SECRET},1,{SECRET}\n",
    ],
    "har": [
        SECRET,
        json.dumps({SECRET: SECRET}),
        har({"request": {"url": f"http://{SECRET}/"}, "response": {"status": 200, "bodySize": SECRET}}),
        har({"request": {"url": f"http://[{SECRET}]/"}, "response": {"status": 200, "bodySize": 1}}),
        har({"request": {"url": f"{SECRET}:/"}, "response": {"status": 200, "bodySize": 1}}),
    ],
}
ROWS = [
    f"{SECRET},{SECRET}\n1,2\n",
    f"{SECRET}\n1\n",
    f"rate,name\n{SECRET}\n",
    f"rate,name\n{SECRET},{SECRET}\n",
    f"rate,{SECRET}\n1,2\n1,3\n",
]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        *(
            (NETWORK.replace('rate = "20 Mbps"', link), content)
            for link, all_of in FILES.values()
            for content in all_of
        ),
        *(
            (NETWORK.replace("bulk", "page") + f'{key} = "file"\n', content)
            for key, all_of in PAGES.items()
            for content in all_of
        ),
        *(
            (f'{NETWORK}[vary.point]\ncsv = "file"\nset = {{ "link.path0.rate" = "{{rate}} Mbps" }}\n', content)
            for content in ROWS
        ),
    ],
)
def test_no_error_says_what_is_in_a_file(tmp_path: Path, text: str, content: str) -> None:
    """But for the scenario's own, and the names of classes in Python."""
    (tmp_path / "file").write_text(content)
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(tmp_path / "s.toml")
    said = "\n".join(map(str, caught.value.errors))
    assert SECRET not in said
    assert str(tmp_path / "file") in said
