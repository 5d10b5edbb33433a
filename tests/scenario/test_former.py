"""Old forms of scenarios: read with a warning, rewritten in place, and no longer in this repository."""

from __future__ import annotations

import re
import subprocess
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from polypath import labs
from polypath.grading import rubric
from polypath.scenario import Scenario, former, vary

ROOT = Path(__file__).parents[2]

NETWORK = """
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
rate = "5 Mbps"
[[application]]
kind = "bulk"
client = "client"
server = "server"
"""
#: An old form of each place, and the new one.
PAIRS = [
    ('[defaults]\nscheduler = { name = "kbest", k = 3 }', '[defaults]\nscheduler = { kind = "kbest", k = 3 }'),
    ('[host.client.path_manager]\n"name" = "fullmesh"', '[host.client.path_manager]\nkind = "fullmesh"'),
    ('[defaults]\ncongestion.name   =\t"lia" # lia', '[defaults]\ncongestion.kind   =\t"lia" # lia'),
    ('[link.a]\nmiddlebox = ["nat", { name = "split" }]', '[link.a]\nmiddlebox = ["nat", { kind = "split" }]'),
    ("[controller]\r\nrouting = { name = 'ecmp' }\r\n", "[controller]\r\nrouting = { kind = 'ecmp' }\r\n"),
    ('[bridging.protocol]\nname = "stp"', '[bridging.protocol]\nkind = "stp"'),
    (
        '[[application]]\nname = "a"\n[application.stack.scheduler]\nname = "kbest"',
        '[[application]]\nname = "a"\n[application.stack.scheduler]\nkind = "kbest"',
    ),
    (
        'application = [{ name = "a", client_stack = { scheduler = { name = "kbest" } } }]',
        'application = [{ name = "a", client_stack = { scheduler = { kind = "kbest" } } }]',
    ),
    ('[vary]\n"defaults.scheduler.name" = ["kbest"]', '[vary]\n"defaults.scheduler.kind" = ["kbest"]'),
    (
        '[vary]\n"host.a.scheduler, host.b.scheduler" = ["kbest", { name = "kbest", k = 2 }]',
        '[vary]\n"host.a.scheduler, host.b.scheduler" = ["kbest", { kind = "kbest", k = 2 }]',
    ),
    (
        '[vary.own]\nname = { "defaults.scheduler" = { name = "own.py:Own", p = { name = "p" } } }',
        '[vary.own]\nname = { "defaults.scheduler" = { kind = "own.py:Own", p = { name = "p" } } }',
    ),
    (
        '[vary.row]\ncsv = "x.csv"\nset = { "defaults.scheduler.name" = "{name}" }',
        '[vary.row]\ncsv = "x.csv"\nset = { "defaults.scheduler.kind" = "{name}" }',
    ),
    (
        '[vary.some]\ndraw = 3\nset = { "defaults.scheduler" = { one_of = ["kbest", { name = "kbest" }] } }',
        '[vary.some]\ndraw = 3\nset = { "defaults.scheduler" = { one_of = ["kbest", { kind = "kbest" }] } }',
    ),
    (
        '[[run]]\nname = "a"\nset = [\'defaults.scheduler={ name = "kbest" }\', "host.a.congestion.name=lia"]',
        '[[run]]\nname = "a"\nset = [\'defaults.scheduler={ kind = "kbest" }\', "host.a.congestion.kind=lia"]',
    ),
    (
        '[[run]]\nvary = ["defaults.scheduler=kbest,{name = \\"kbest\\", k = 2}", "seeds=3"]',
        '[[run]]\nvary = ["defaults.scheduler=kbest,{kind = \\"kbest\\", k = 2}", "seeds=3"]',
    ),
    (
        '[[expect]]\nname = "a"\nrelative_to = { at = { "defaults.scheduler.name" = "kbest" } }',
        '[[expect]]\nname = "a"\nrelative_to = { at = { "defaults.scheduler.kind" = "kbest" } }',
    ),
    (
        '[[points]]\nname = "a"\nat = { "defaults.scheduler.name" = "b" }',
        '[[points]]\nname = "a"\nat = { "defaults.scheduler.kind" = "b" }',
    ),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_an_old_form_is_rewritten_and_nothing_else(old: str, new: str) -> None:
    made = former.rewritten(f"# name = 1\n{old}")
    assert made.text == f"# name = 1\n{new}"
    assert len(made.changes) == sum(a != b for a, b in zip(old.split("="), new.split("="), strict=True))
    assert former.rewritten(made.text) == former.Rewritten(made.text, ())


@pytest.mark.parametrize(
    "text",
    [
        '[[application]]\nname = "bulk"\nkind = "bulk"',
        '[defaults]\nscheduler = { kind = "own.py:Own", name = "an argument" }',
        "[defaults.scheduler]\nname = 3",
        '[link.scheduler]\nname = "no table of an algorithm"',
        '[vary.name]\nkbest = { "defaults.scheduler" = "kbest" }',
        'name = "scheduler"',
    ],
)
def test_what_is_no_old_form_stays(text: str) -> None:
    assert former.rewritten(text) == former.Rewritten(text, ())


@pytest.mark.parametrize("escaped", [r"a\nb", r"a\tb", r"a\u007fb\u0001", r"a\\b\"c"])
def test_what_a_text_of_a_lab_escapes_stays_escaped(escaped: str) -> None:
    old = f'[[run]]\nname = "r"\nset = ["defaults.congestion.name=\'{escaped}\'"]\n'
    made = tomllib.loads(former.rewritten(old).text)
    before = tomllib.loads(old)["run"][0]["set"][0]
    assert made["run"][0]["set"] == [before.replace("congestion.name", "congestion.kind")]


def test_each_form_tells_what_it_does() -> None:
    for form in former.FORMS:
        old, new = form.example
        assert former.rewritten(f"[defaults]\n{old}").text == f"[defaults]\n{new}"


def test_a_scenario_with_old_forms_has_the_same_plan_and_warns_once() -> None:
    old = NETWORK + '[defaults]\nscheduler = { name = "roundrobin", num_segments = 3 }\ncongestion = { name = "lia" }\n'
    with pytest.warns(FutureWarning) as told:
        made = Scenario.parse(old, "old.toml")
    assert [str(each.message) for each in told] == [
        'old.toml:12: old form: defaults.scheduler: write kind = "roundrobin" in place of name (1 more); '
        "`polypath upgrade old.toml` shows the new form"
    ]
    now = Scenario.parse(former.rewritten(old).text, "new.toml")
    assert made.plan().data == now.plan().data
    assert made == now
    assert made.to_data()["defaults"]["scheduler"] == {"kind": "roundrobin", "num_segments": 3}


def test_a_file_of_an_algorithm_in_old_form_is_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("class Own:\n    def select(self, view):\n        return None\n")
    file = tmp_path / "old.toml"
    file.write_text(NETWORK + '[defaults]\nscheduler = { name = "own.py:Own", num_segments = 3 }\n')
    with pytest.warns(FutureWarning, match=r"old\.toml:12"):
        made = Scenario.load(file)
    assert made.plan().data["nodes"][0]["stack"]["scheduler"]["parameters"]["class"] == "Own"


@pytest.mark.parametrize(
    ("setting", "now"),
    [
        ("defaults.scheduler.name=roundrobin", '"defaults.scheduler.kind" in place of "defaults.scheduler.name"'),
        ('defaults.scheduler={name = "roundrobin"}', 'defaults.scheduler: write kind = "roundrobin" in place of name'),
    ],
)
def test_a_setting_in_old_form_is_taken(setting: str, now: str) -> None:
    with pytest.warns(FutureWarning, match=re.escape(now)):
        made = Scenario.parse(NETWORK, "x.toml").with_settings([setting])
    assert made.plan().data["nodes"][0]["stack"]["scheduler"]["name"] == "roundrobin"


def test_an_axis_in_old_form_is_taken() -> None:
    with pytest.warns(FutureWarning, match=re.escape("--vary defaults.scheduler.name=roundrobin,default: old form")):
        made = Scenario.parse(NETWORK, "x.toml").with_axes(["defaults.scheduler.name=roundrobin,default"])
    assert [axis.name for axis in made.axes] == ["defaults.scheduler.kind"]
    with pytest.warns(FutureWarning):
        varied = Scenario.parse(NETWORK, "x.toml").varied(
            {"defaults.scheduler": [{"name": "roundrobin", "num_segments": 3}]}
        )
    assert varied.axes[0].labels == ["roundrobin num_segments=3"]
    assert vary.label({"kind": "red", "min": "3"}) == "red min=3"


def test_a_lab_in_old_form_is_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(NETWORK)
    run = '[[run]]\nname = "one"\nset = [\'defaults.scheduler={ name = "roundrobin", num_segments = 3 }\']\n'
    (tmp_path / "lab.toml").write_text(f'title = "A"\nquestion = "B?"\n{run}')
    with pytest.warns(FutureWarning, match=r"lab\.toml:5: old form") as told:
        made = labs.get(tmp_path).scenario("one")
    assert len(told) == 1
    assert made.plan().data["nodes"][0]["stack"]["scheduler"]["name"] == "roundrobin"


def scenarios() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "*.toml"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = [ROOT / name for name in listed.stdout.split("\n") if name] or ROOT.glob("*/**/*.toml")
    for path in found:
        data = tomllib.loads(path.read_text())
        if data.keys() & {"host", "link", "topology", "application", "run", "points"}:
            yield path


def test_every_scenario_of_the_repository_is_in_the_present_form() -> None:
    found = list(scenarios())
    assert len(found) > 150
    old = {str(path): said for path in found if (said := former.of_bytes(path.read_bytes(), path.name)[1].changes)}
    assert not old
    assert all(former.of_bytes(path.read_bytes(), path.name)[0] == path.read_bytes() for path in found)


def test_every_toml_block_of_the_pages_is_in_the_present_form() -> None:
    written = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/model/*.md"), *ROOT.glob("docs/queues/*.md")]
    pages = [*written, *ROOT.glob("*.md"), *ROOT.glob("python/polypath/labs/*/README.md")]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) > 40
    for block in blocks:
        try:
            tomllib.loads(block)
        except tomllib.TOMLDecodeError:
            continue
        assert not former.rewritten(block).changes, block


def test_a_rubric_in_old_form_is_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(NETWORK)
    (tmp_path / "rubric.toml").write_text(
        'title = "A"\nsubmission = "scenario"\nscenario = "scenario.toml"\n'
        '[vary]\n"defaults.scheduler.name" = ["roundrobin"]\n'
        '[[points]]\nname = "a"\npoints = 1\nmeasure = "goodput"\nconnection = "bulk"\nmin = 1\n'
    )
    with pytest.warns(FutureWarning, match=r"rubric\.toml:5: old form"):
        rubric.load(tmp_path / "rubric.toml")


def test_reading_without_old_forms_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scenario.parse(NETWORK, "x.toml")
