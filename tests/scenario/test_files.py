"""The files that a scenario names beside itself."""

from pathlib import Path

import pytest

from polypath.scenario import Scenario

NETWORK = """
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
rate = { trace = "slow.trace" }
[link.b]
ends = ["client", "server"]
rate = "1 Mbps"
conditions = { csv = "still.csv" }
"""
APPLICATION = '[[application]]\nkind = "bulk"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "slow.trace": "20\n",
        "fast.trace": "1\n",
        "still.csv": "time_s,delay_ms\n0,10\n",
        "shaky.csv": "time_s,delay_ms\n0,10\n1,90\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def load(folder: Path, text: str) -> Scenario:
    path = folder / "lab.toml"
    path.write_text(text)
    return Scenario.load(path)


@pytest.mark.parametrize(
    "axis",
    [
        '[vary]\n"link.a.rate.trace" = ["slow.trace", "fast.trace"]',
        '[vary]\n"link.b.conditions.csv" = ["still.csv", "shaky.csv"]',
        '[vary.x]\na = { "link.a.rate.trace" = "fast.trace" }\nb = { "link.b.conditions.csv" = "shaky.csv" }',
    ],
)
def test_an_axis_names_them_beside_the_scenario(folder: Path, axis: str) -> None:
    scenario = load(folder, NETWORK + APPLICATION + axis)
    plans = {scenario.at([value]).plan().sha256() for value in scenario.axes[0].values}
    assert len(plans) == 2
    assert set(scenario.scripts()) >= {folder / "slow.trace", folder / "still.csv"}


def test_what_a_program_is_given_is_beside_the_scenario(folder: Path) -> None:
    """As a setting and as the values of an axis."""
    for name in ("a.txt", "b.txt", "c.txt"):
        (folder / name).write_text(name)
    program = '[[application]]\nkind = "command"\nname = "it"\ncommand = "cat *"\nfiles = ["a.txt"]\n'
    axis = '[vary]\n"application.it.files" = [["b.txt"], ["a.txt", "c.txt"]]\n'
    scenario = load(folder, NETWORK + program + axis)
    assert {folder / name for name in ("a.txt", "b.txt", "c.txt")} <= set(scenario.scripts())
    plans = [scenario.at([value]).plan().data["programs"][0]["files"] for value in scenario.axes[0].values]
    assert plans == [{"b.txt": "b.txt"}, {"a.txt": "a.txt", "c.txt": "c.txt"}]


def test_an_application_of_a_controller_is_with_what_it_imports(folder: Path) -> None:
    (folder / "app.py").write_text("import tables\n")
    (folder / "tables.py").write_text("import json\n")
    ruled = '[router.r]\n[link.c]\nends = ["client", "r"]\n[controller]\napp = "app.py"\n'
    scenario = load(folder, NETWORK + ruled + APPLICATION)
    assert set(scenario.scripts()) >= {folder / "app.py", folder / "tables.py"}
    plan = scenario.plan().data["controller"]["app"]
    assert (plan["file"], plan["source"], plan["modules"]) == (
        "app.py",
        "import tables\n",
        {"tables.py": "import json\n"},
    )


def test_other_texts_stay_as_they_are(folder: Path) -> None:
    """Though they look like the names of files."""
    program = (
        '[[application]]\nkind = "command"\ncommand = "a.py:B"\nenvironment = { csv = "x.csv", trace = "y.py:C" }\n'
    )
    page = '[[application]]\nkind = "page"\nobjects = [{ name = "a.py:B", size = "1 kB" }]\n'
    scenario = load(folder, 'description = "see a.py:B"\n' + NETWORK + program + page)
    assert scenario.description == "see a.py:B"
    (command,) = scenario.plan().data["programs"]
    assert command["command"] == ["sh", "-c", "a.py:B"]
    assert command["environment"] == {"csv": "x.csv", "trace": "y.py:C"}
    assert scenario.plan().data["applications"][0]["work"]["objects"][0]["name"] == "a.py:B"
    assert set(scenario.scripts()) == {folder / "slow.trace", folder / "still.csv"}


@pytest.mark.parametrize("kind", ["scheduler", "path_manager"])
def test_the_arguments_of_a_class_stay_as_they_are(folder: Path, kind: str) -> None:
    """In its table, in a setting's path, and in an axis."""
    (folder / "own.py").write_text("class Own:\n    def select(self, view): ...\n    def manage(self, view): ...\n")
    arguments = {"trace": "fast", "csv": ["a.csv"], "files": "f", "app": "g", "text": "x.py:Y", "more": {"har": "h"}}
    table = 'trace = "fast", csv = ["a.csv"], files = "f", app = "g", text = "x.py:Y", more = { har = "h" }'
    given = f'{kind} = {{ kind = "own.py:Own", {table} }}\n'
    axis = f'[vary]\n"host.client.{kind}.trace" = ["slow", "fast"]\n"host.client.{kind}.text" = ["x.py:Y", "z.py:Y"]\n'
    scenario = load(folder, NETWORK.replace("[host.server]", f"{given}[host.server]") + APPLICATION + axis)
    files = {folder / name for name in ("own.py", "slow.trace", "still.csv")}
    assert set(scenario.scripts()) == files
    plan = scenario.at([axis.values[-1] for axis in scenario.axes]).plan()
    stack = next(node["stack"] for node in plan.data["nodes"] if node["name"] == "client")
    assert stack[kind]["parameters"]["arguments"] == arguments | {"text": "z.py:Y"}


def test_an_axis_of_algorithms_names_their_files(folder: Path) -> None:
    (folder / "own.py").write_text("class Own:\n    def select(self, view): ...\n")
    own = '[vary]\n"host.client.scheduler" = ["own.py:Own", { kind = "own.py:Own", trace = "own.py:Own" }]\n'
    scenario = load(folder, NETWORK + APPLICATION + own)
    assert folder / "own.py" in scenario.scripts()
    chosen = scenario.at([scenario.axes[0].values[1]]).host["client"].scheduler
    assert chosen is not None
    assert chosen.parameters == {"trace": "own.py:Own"}


@pytest.mark.parametrize("name", ["objects", "rows", "command", "files", "app", "scheduler"])
def test_a_host_may_be_named_as_a_key_is(folder: Path, name: str) -> None:
    classes = "class Own:\n    def select(self, view): ...\nclass Other:\n    def manage(self, view): ...\n"
    (folder / "own.py").write_text(classes)
    text = (
        (NETWORK + APPLICATION)
        .replace("client", name)
        .replace("[host.server]", 'scheduler = "own.py:Own"\n[host.server]')
    )
    scenario = load(folder, text + f'client = "{name}"\n[vary]\n"host.{name}.path_manager" = ["own.py:Other"]\n')
    assert folder / "own.py" in scenario.scripts()
    scenario.at([scenario.axes[0].values[0]]).plan()
