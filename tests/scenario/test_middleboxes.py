"""Middleboxes in scenarios: written, checked, drawn, and refused where they cannot be."""

from pathlib import Path

import pytest

from polypath.scenario import Scenario, ScenarioError

TEXT = """
name = "box"
duration = "1 s"
[host.client]
[host.server]
[router.r]
[link.access]
ends = ["client", "r"]
{}
[link.path]
ends = ["r", "server"]
[[application]]
name = "transfer"
kind = "bulk"
size = "1 kB"
"""


def _load(tmp_path: Path, line: str) -> Scenario:
    file = tmp_path / "box.toml"
    file.write_text(TEXT.format(line))
    return Scenario.load(file)


def test_one_middlebox_and_several(tmp_path: Path) -> None:
    nat = {"inside": "first", "keep_ports": True}
    one = _load(tmp_path, 'middlebox = "nat"').plan().data["links"]
    assert one[0]["middleboxes"] == [{"name": "nat", "parameters": nat}]
    assert "middleboxes" not in one[1]
    several = _load(tmp_path, 'middlebox = ["nat", { kind = "split", bytes = 500 }]').plan().data["links"]
    assert [each["name"] for each in several[0]["middleboxes"]] == ["nat", "split"]
    assert several[0]["middleboxes"][1]["parameters"]["bytes"] == 500


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('middlebox = "nta"', "unknown middlebox 'nta'; did you mean 'nat'?"),
        (
            'middlebox = { kind = "split", byte = 3 }',
            "middlebox 'split' has no parameter 'byte'; did you mean 'bytes'?",
        ),
        ('middlebox = { kind = "split", bytes = 3 }', "parameter 'bytes' of middlebox 'split' is at least 128, not 3"),
        ('middlebox = ["nat", 3]', "expected a name"),
        ("middlebox = []", "expected a middlebox or several, or none written at all"),
    ],
)
def test_mistakes_are_one_line_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        _load(tmp_path, line).plan()
    text = str(caught.value)
    assert "box.toml:9: link.access.middlebox" in text
    assert message in text
    assert "\n" not in text
