"""`[vary]`, `--vary`, and what `--set` does to axes."""

from pathlib import Path

import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.vary import Axis, Value
from polypath.sweeps import points


def parsed(plain: str, table: str) -> Scenario:
    return Scenario.parse(f"{plain}\n[vary]\n{table}\n", "small.toml")


def labels(scenario: Scenario) -> dict[str, list[str]]:
    return {axis.name: axis.labels for axis in scenario.axes}


def test_axes_come_in_the_order_written(plain: str) -> None:
    scenario = parsed(
        plain,
        '"link.path0.rate, link.path1.rate" = ["1 Mbps", "2 Mbps"]\n'
        '"defaults.scheduler" = ["default", { kind = "roundrobin", num_segments = 2 }]\nseeds = 3\n'
        '[vary.loss]\nnone = {}\nwifi = { "link.path0.loss" = "2 %", "link.path0.jitter" = "1 ms" }',
    )
    assert labels(scenario) == {
        "link.path0.rate, link.path1.rate": ["1 Mbps", "2 Mbps"],
        "defaults.scheduler": ["default", "roundrobin num_segments=2"],
        "seed": ["1", "2", "3"],
        "loss": ["none", "wifi"],
    }
    at = scenario.at([axis.values[1] for axis in scenario.axes])
    assert not at.axes
    data = at.plan().data
    assert [link["forward"]["rate_bps"] for link in data["links"][:2]] == [2_000_000, 2_000_000]
    assert data["nodes"][0]["stack"]["scheduler"]["parameters"]["num_segments"] == 2
    assert data["links"][0]["forward"]["jitter_ns"] == 1_000_000
    assert data["seed"] == 2


def test_seeds_start_at_the_scenarios_own(plain: str) -> None:
    assert labels(Scenario.parse("seed = 40\n" + plain + "[vary]\nseeds = 2", "x")) == {"seed": ["40", "41"]}


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ('"defaults.receive_bufer" = ["1 MB"]', "small.toml:{}: axis 'defaults.receive_bufer' at 1 MB: unknown key "
         "'receive_bufer' in defaults; did you mean 'receive_buffer'?"),
        ('"link.path0.rate" = ["1 Mbps",\n"2"]', "small.toml:{}: axis 'link.path0.rate' at 2: link.path0.rate: "
         "'2' has no unit; write for example \"20 Mbps\""),
        ('"link.path0.rate" = []', "small.toml:{}: vary: axis 'link.path0.rate' has no values"),
        ('"link.path0.rate" = "1 Mbps"', "small.toml:{}: vary: axis 'link.path0.rate' needs a list of values, "
         "such as ['1 Mbps']"),
        ("seed = [1, 2, 1]", "small.toml:{}: vary: axis 'seed' has the value '1' twice"),
        ("seed = [1]\nseeds = 2", "small.toml:{}: vary: 'seed' is varied by two axes"),
        ("seeds = 0", "small.toml:{}: vary: expected a number of seeds from 1 to 10000"),
        ('defaults.receive_buffer = ["1 MB"]', "small.toml:{}: vary: a path is written in quotes: "
         '"defaults.receive_buffer" = [..]'),
        ('link.path0.rate = ["1 Mbps"]', "small.toml:{}: vary: a path is written in quotes: "
         '"link.path0.rate" = [..]'),
        ('host.client.scheduler.num_segments = [1]', "small.toml:{}: vary: a path is written in quotes: "
         '"host.client.scheduler.num_segments" = [..]'),
        ('[vary.x]\na = "1 MB"', "small.toml:{}: vary: a value of the named axis 'x' is a table of settings, such as "
         'a = {{ "link.path0.rate" = "10 Mbps" }}'),
        ('[vary.x]\na = {}\nb = { "link.path7.rate" = "1 Mbps" }', "small.toml:{}: axis 'x' at b: unknown link "
         "'path7'; did you mean 'path1'?"),
        ('"vary.seeds" = [1]', "small.toml:{}: axis 'vary.seeds' at 1: the axes of a sweep are changed by --vary"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(plain: str, table: str, error: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parsed(plain, table)
    before = plain.count("\n") + 2
    assert str(caught.value) == error.format(before + len(table.splitlines()))


def test_too_many_points(plain: str) -> None:
    with pytest.raises(ScenarioError, match="the axes span more than 100000 points"):
        parsed(plain, f'seeds = 10000\n"link.path0.delay" = {[f"{n} ms" for n in range(11)]}')


def test_it_is_written_and_read_back(plain: str) -> None:
    scenario = parsed(
        plain,
        '"defaults.scheduler" = [{ kind = "roundrobin", num_segments = 2 }, "default"]\nseeds = 2\n'
        '[vary."two words"]\nnone = {}\nwifi = { "link.path0.loss" = "2 %" }',
    )
    again = Scenario.parse(scenario.to_toml(), "again.toml")
    assert again.vary == scenario.vary
    assert [axis.name for axis in again.axes] == [axis.name for axis in scenario.axes]
    assert Scenario.parse(scenario.to_toml(resolved=True), "x").vary == scenario.vary


def test_a_setting_fixes_an_axis(scenario: Scenario) -> None:
    fixed = scenario.with_settings(["defaults.receive_buffer=2 MB"])
    assert labels(fixed) == {"seed": ["4", "5", "6"]}
    assert labels(scenario.with_settings(["seed=9"])) == {"defaults.receive_buffer": ["30 kB", "1 MB"]}
    done = scenario.with_settings(["seed=9", "defaults.receive_buffer=2 MB"])
    assert done.plan().data["seed"] == 9


def test_a_setting_does_not_fix_half_an_axis(plain: str) -> None:
    scenario = parsed(plain, '"link.path0.rate, link.path1.rate" = ["1 Mbps", "2 Mbps"]')
    with pytest.raises(ScenarioError) as caught:
        scenario.with_settings(["link.path0.rate=3 Mbps"])
    assert str(caught.value) == (
        "--set link.path0.rate=3 Mbps: axis 'link.path0.rate, link.path1.rate' varies this; "
        "--vary 'link.path0.rate, link.path1.rate=..' chooses its values"
    )


def test_a_sweep_has_no_plan_of_its_own(scenario: Scenario) -> None:
    with pytest.raises(ScenarioError, match=r"^the scenario varies defaults\.receive_buffer, seed: each point"):
        scenario.plan()


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("link.path0.delay=1 ms,2 ms", {"link.path0.delay": ["1 ms", "2 ms"]}),
        ("defaults.receive_buffer=5 MB,6 MB", {"defaults.receive_buffer": ["5 MB", "6 MB"]}),
        ('defaults.receive_buffer=["5 MB", "6 MB"]', {"defaults.receive_buffer": ["5 MB", "6 MB"]}),
        ("seeds=2", {"seed": ["1", "2"]}),
        ("seed=7,8", {"seed": ["7", "8"]}),
        (
            'defaults.scheduler={kind = "roundrobin", num_segments = 2},default,"roundrobin"',
            {"defaults.scheduler": ["roundrobin num_segments=2", "default", "roundrobin"]},
        ),
    ],
)
def test_axes_of_the_command_line(scenario: Scenario, given: str, after: dict[str, list[str]]) -> None:
    kept = {"defaults.receive_buffer": ["30 kB", "1 MB"], "seed": ["4", "5", "6"]}
    assert labels(scenario.with_axes([given])) == {**kept, **after}


def test_labels_of_a_named_axis_are_chosen(plain: str) -> None:
    scenario = parsed(plain, '[vary.loss]\nnone = {}\nwifi = { "link.path0.loss" = "2 %" }')
    assert labels(scenario.with_axes(["loss=wifi"])) == {"loss": ["wifi"]}
    with pytest.raises(ScenarioError, match=r"^--vary loss=wify: the axis has no value 'wify'; did you mean 'wifi'\?$"):
        scenario.with_axes(["loss=wify"])


def test_a_setting_fixes_a_named_axis_at_one_of_its_values(plain: str) -> None:
    loss = '[vary.loss]\nnone = {}\nwifi = { "link.path0.loss" = "2 %", "link.path0.delay" = "9 ms" }'
    scenario = parsed(plain, f"seeds = 2\n{loss}")
    fixed = scenario.with_settings(["link.path0.delay=7 ms", "loss=wifi"])
    assert labels(fixed) == {"seed": ["1", "2"]}
    changed = ["link.path0.loss=2 %", "link.path0.delay=7 ms"]
    assert fixed.with_settings(["seed=1"]) == Scenario.parse(plain, "small.toml").with_settings(changed)
    assert scenario.with_settings(["loss=none"]) == parsed(plain, "seeds = 2")
    with pytest.raises(ScenarioError, match=r"^--set loss=wify: the axis has no value 'wify'; did you mean 'wifi'\?$"):
        scenario.with_settings(["loss=wify"])
    with pytest.raises(ScenarioError, match=r"^--set loss: a setting is PATH=VALUE"):
        scenario.with_settings(["loss"])


@pytest.mark.parametrize("given", ["seed", "=1", "seed=", "link.path0.rate=1 Mbps,,2 Mbps"])
def test_no_axis(scenario: Scenario, given: str) -> None:
    with pytest.raises(ScenarioError, match=r"^--vary .*: an axis is PATH=VALUE,VALUE, such as"):
        scenario.with_axes([given])


def test_a_mistake_on_the_command_line_names_the_option(scenario: Scenario) -> None:
    with pytest.raises(
        ScenarioError, match=r"^--vary link\.path0\.rate=1 Mbps,fast: axis 'link\.path0\.rate' at fast: "
    ):
        scenario.with_axes(["link.path0.rate=1 Mbps,fast"])


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["300 kB", "1 MB"], ("bytes", [300_000, 1_000_000])),
        (["10 Mbps", "1 Gbps"], ("bps", [1e7, 1e9])),
        (["10 ms", "2 s"], ("s", [0.01, 2])),
        (["10 packets"], ("packets", [10])),
        (["0 %", "1 %"], ("fraction", [0, 0.01])),
        (["1", "2"], ("", [1, 2])),
        (["reno", "olia"], None),
        (["1", "10 ms"], None),
        (["1", "inf"], None),
        (["nan"], None),
    ],
)
def test_labels_as_numbers(texts: list[str], numbers: object) -> None:
    assert Axis("x", tuple(Value(text, {}) for text in texts)).numbers() == numbers


def test_an_axis_may_not_have_the_name_of_a_column(plain: str) -> None:
    scenario = parsed(plain, '[vary.subflows]\none = { "duration" = "1 s" }\ntwo = { "duration" = "2 s" }')
    with pytest.raises(ScenarioError, match="axis 'subflows' has the name of a column of the results"):
        points(scenario)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            '[vary.rtt]\n"20 ms" = { "link.path0.delay" = "10 ms" }\n"40 ms" = { "link.path0.delay" = "20 ms" }',
            "axis 'rtt' needs a column 'rtt_s' for its numbers, and the results have one already",
        ),
        (
            '[vary.a]\n1 = { "link.path0.delay" = "10 ms" }\n2 = { "link.path0.delay" = "20 ms" }\n'
            '[vary.a_number]\nx = {}\ny = { "link.path1.delay" = "10 ms" }',
            "axis 'a' needs a column 'a_number' for its numbers",
        ),
    ],
)
def test_numbers_of_an_axis_have_a_column_of_their_own(plain: str, table: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        points(Scenario.parse(f"{plain}\n{table}\n", "small.toml"))


TRACED = {
    "a setting's own path": '"link.path0.rate.trace" = ["one.trace", "more/two.trace"]',
    "several paths": '"link.path1.rate.trace, link.path0.rate.trace" = ["one.trace", "more/two.trace"]',
    "a table": '"link.path0.rate" = [{ trace = "one.trace" }, { trace = "more/two.trace" }]',
    "labels": '[vary.way]\n"one.trace" = { "link.path0.rate.trace" = "one.trace" }\n'
    '"more/two.trace" = { "link.path0.rate.trace" = "more/two.trace" }',
    "rows": '[vary.way]\ncsv = "ways.csv"\nset = { "link.path0.rate.trace" = "{file}" }',
}


@pytest.mark.parametrize("table", TRACED.values(), ids=list(TRACED))
def test_files_of_an_axis_are_beside_the_scenario_and_known(plain: str, table: str, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "ways.csv").write_text("file\none.trace\nmore/two.trace\n")
    names = ["one.trace", "more/two.trace"]
    for name in names:
        (tmp_path / name).write_text("5\n10\n")
    traced = plain.replace('rate = "10 Mbps"', 'rate = { trace = "one.trace" }')
    traced = traced.replace('rate = "5 Mbps"', 'rate = { trace = "one.trace" }')
    (tmp_path / "scenario.toml").write_text(f"{traced}\n[vary]\n{table}\n")
    scenario = Scenario.load(tmp_path / "scenario.toml")
    (axis,) = scenario.axes
    assert [label.removeprefix("trace=") for label in axis.labels] == names
    assert {path for path in scenario.scripts() if path.suffix == ".trace"} == {tmp_path / name for name in names}
    assert [point.plan.data["links"][0]["forward"]["trace"]["name"] for point in points(scenario, later=True)] == [
        Path(name).name for name in names
    ]


def test_a_label_says_of_a_python_file_what_the_scenario_says(plain: str, tmp_path: Path) -> None:
    source = "class First:\n    def select(self, view):\n        return 0\n"
    (tmp_path / "first.py").write_text(source)
    table = '"defaults.scheduler" = ["default", "first.py:First", { kind = "first.py:First" }]'
    (tmp_path / "scenario.toml").write_text(f"{plain}\n[vary]\n{table}\n".replace("{ kind", "{ mark = 1, kind"))
    assert labels(Scenario.load(tmp_path / "scenario.toml")) == {
        "defaults.scheduler": ["default", "first.py:First", "first.py:First mark=1"]
    }


def test_an_application_of_an_axis_is_known_with_the_modules_beside_it(plain: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import helper\n")
    (tmp_path / "two.py").write_text("import json\n")
    (tmp_path / "helper.py").write_text("")
    text = plain.replace("[router.r]", "[switch.r]") + '[controller]\napp = "one.py"\n'
    (tmp_path / "scenario.toml").write_text(f'{text}[vary]\n"controller.app" = ["one.py", "two.py"]\n')
    scenario = Scenario.load(tmp_path / "scenario.toml")
    assert set(scenario.scripts()) == {tmp_path / name for name in ("one.py", "helper.py", "two.py")}


def test_a_table_in_quotes_is_said_to_be_a_text(plain: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parsed(plain, '"link.path0.rate" = [\'{ trace = "a.trace" }\']')
    said = "is a text, not a table; write the table as TOML, without quotes around it"
    assert str(caught.value).endswith(said)


def test_a_point_of_a_class_has_a_folder_of_its_name(plain: str, tmp_path: Path) -> None:
    source = "class First:\n    def select(self, view):\n        return 0\n"
    (tmp_path / "more").mkdir()
    for name in ("first.py", "more/first.py"):
        (tmp_path / name).write_text(source + f"# {name}\n")
    text = f'{plain}\n[vary]\n"defaults.scheduler" = ["default", "first.py:First"]\n'
    (tmp_path / "scenario.toml").write_text(text)
    scenario = Scenario.load(tmp_path / "scenario.toml")
    assert [point.folder for point in points(scenario)] == ["scheduler=default", "scheduler=First"]
    (tmp_path / "scenario.toml").write_text(text.replace('"default"', '"more/first.py:First"'))
    folders = [point.folder for point in points(Scenario.load(tmp_path / "scenario.toml"))]
    assert len(set(folders)) == 2
    assert all(name.startswith("scheduler=First-") for name in folders)


def test_a_named_axis_may_have_the_name_of_an_algorithms_key(plain: str, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("class First:\n    def select(self, view):\n        return 0\n")
    table = '"defaults.scheduler" = { own = { "defaults.scheduler" = "first.py:First" }, rows = {} }'
    (tmp_path / "scenario.toml").write_text(f"{plain}\n[vary]\n{table}\nseeds = 2\n")
    scenario = Scenario.load(tmp_path / "scenario.toml")
    assert scenario.scripts() == [tmp_path / "first.py"]
    again = Scenario.parse(scenario.to_toml(), "again.toml")
    assert labels(again) == labels(scenario) == {"defaults.scheduler": ["own", "rows"], "seed": ["1", "2"]}
    assert list(labels(again)) == list(labels(scenario))
