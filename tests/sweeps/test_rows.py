"""An axis whose values are the rows of a CSV file."""

from pathlib import Path

import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.sweeps import points

TABLE = """name,class,rate,delay,loss,buffer
0,low,1.5,10,,1 MB
1,low,2,20,1,2 MB

10,low,3,30,,3 MB
0,high,4,100,,4 MB
"""
AXIS = """[vary.point]
csv = "points.csv"
rows = { class = "low" }
set = { "link.path0.rate" = "{rate} Mbps", "link.path0.delay" = "{delay} ms", "link.path0.loss" = "{loss} %", \
"defaults.receive_buffer" = "{buffer}" }
"""


@pytest.fixture
def written(plain: str, tmp_path: Path) -> Path:
    (tmp_path / "points.csv").write_text(TABLE)
    (tmp_path / "small.toml").write_text(f"{plain}\n{AXIS}")
    return tmp_path / "small.toml"


def changed(written: Path, old: str, new: str, file: str = "small.toml") -> str:
    """What is said of a scenario, or of its table, with something else in it; without the folder."""
    path = written.with_name(file)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(written)
    return str(caught.value).replace(f"{written.parent}/", "")


def test_a_row_sets_what_its_columns_say(written: Path) -> None:
    found = points(Scenario.load(written))
    assert [point.title for point in found] == ["point=0", "point=1", "point=10"]
    links = [point.plan.data["links"][0]["forward"] for point in found]
    assert [link["rate_bps"] for link in links] == [1_500_000, 2_000_000, 3_000_000]
    assert [link["delay_ns"] for link in links] == [10_000_000, 20_000_000, 30_000_000]
    assert [point.plan.data["nodes"][0]["stack"]["receive_buffer"][2] for point in found] == [
        10**6,
        2 * 10**6,
        3 * 10**6,
    ]
    (axis,) = Scenario.load(written).axes
    assert axis.numbers() == ("", [0, 1, 10])


def test_a_setting_fixes_the_axis_at_one_row(written: Path) -> None:
    (_, point, _) = points(Scenario.load(written))
    assert Scenario.load(written).with_settings(["point=1"]).plan() == point.plan
    with pytest.raises(ScenarioError, match=r"^--set point=2: the axis has no value '2'; it has 0, 1, 10$"):
        Scenario.load(written).with_settings(["point=2"])


def test_an_empty_cell_leaves_a_setting_as_it_is(written: Path) -> None:
    (axis,) = Scenario.load(written).axes
    assert ["link.path0.loss" in value.settings for value in axis.values] == [False, True, False]


def test_it_is_the_same_plan_as_of_an_axis_with_labels(written: Path, plain: str) -> None:
    settings = '"link.path0.rate" = "2 Mbps", "link.path0.delay" = "20 ms", "link.path0.loss" = "1 %"'
    labels = f'[vary.point]\n1 = {{ {settings}, "defaults.receive_buffer" = "2 MB" }}'
    (same,) = points(Scenario.parse(f"{plain}\n{labels}", "small.toml", default_name="small"))
    assert points(Scenario.load(written))[1].plan.sha256() == same.plan.sha256()


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (["point=1"], ["1"]),
        (["point=1*"], ["1", "10"]),
        (["point=10,0"], ["0", "10"]),
        (["point.class=high"], ["0"]),
        (["point.class=high", "point=0"], ["0"]),
        (["point.rate=?"], ["1", "10"]),
        (["point=1", "point=*"], ["0", "1", "10"]),
    ],
)
def test_rows_are_chosen_on_the_command_line(written: Path, given: list[str], labels: list[str]) -> None:
    (axis,) = Scenario.load(written).with_axes(given).axes
    assert axis.labels == labels


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("point=7", "--vary point=7: vary: points.csv has no row whose 'name' is '7'"),
        ("point.class=lo", "--vary point.class=lo: vary: points.csv has no row whose 'class' is 'lo'"),
        ("point.clas=low", "--vary point.clas=low: vary: points.csv has no column 'clas'"),
        ("point.loss=1,2,3", "--vary point.loss=1,2,3: vary: points.csv has no row whose 'loss' is '2'"),
        ("point.delay=100", "--vary point.delay=100: vary: points.csv has no row that 'rows' of axis 'point' chooses"),
        ("point.class=low,high", "--vary point.class=low,high: vary: points.csv:6: the row has the name of line 2; "
         "choose with 'rows'"),
    ],
)  # fmt: skip
def test_a_choice_that_finds_nothing_is_refused(written: Path, given: str, error: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(written).with_axes([given])
    assert str(caught.value).replace(f"{written.parent}/", "") == error


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("1,low,2,20,1,2 MB", "1,low,2,20,1", "small.toml:{}: vary: points.csv:3: the row has 5 values, and there are "
         "6 columns"),
        ("10,low,3", ",low,3", "small.toml:{}: vary: points.csv:5: the row has no text in column 1, which names it"),
        ("10,low,3", "1,low,3", "small.toml:{}: vary: points.csv:5: the row has the name of line 3"),
        ("10,low,3", "10,low,fast", "small.toml:{}: points.csv:5: axis 'point': no scenario has what this row "
         "sets: link.path0.rate"),
        ("class,rate", "class,class", "small.toml:{}: vary: points.csv:1: column 3 has the name of one before it"),
        ("class,rate", "class,", "small.toml:{}: vary: points.csv:1: column 3 has no name"),
        (TABLE, "name,class\n", "small.toml:{}: vary: points.csv:1: there are no rows below the header"),
        (TABLE, "", "small.toml:{}: vary: points.csv:1: the first line names no columns"),
        ("4 MB", '"4 MB', "small.toml:{}: vary: points.csv:6: this is no CSV: unexpected end of data"),
        ("class,rate", "class,rates", "small.toml:{}: vary: points.csv has no column 'rate'"),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_line_with_its_place(written: Path, old: str, new: str, error: str) -> None:
    said = changed(written, old, new, "points.csv")
    line = next(
        number for number, text in enumerate(written.read_text().splitlines(), 1) if text == 'csv = "points.csv"'
    )
    at = {"axis": line - 1, "no column '": line + 2}
    place = next((number for word, number in at.items() if word in said), line)
    assert said == error.format(place)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"points.csv"', '"other.csv"', "vary: other.csv: no such file"),
        ('"points.csv"', "5", "vary: axis 'point': 'csv' is a file's name"),
        ("rows =", "row =", "vary: unknown key 'row' in axis 'point', which takes its values from a file; "
         "did you mean 'rows'?"),
        ('{ class = "low" }', '"low"', "vary: axis 'point': 'rows' is a table"),
        ("{rate}", "{rat}", "vary: points.csv has no column 'rat'"),
        ("csv =", 'label = "names"\ncsv =', "vary: points.csv has no column 'names'"),
        ("set =", "sets =", "vary: unknown key 'sets' in axis 'point', which takes its values from a file; "
         "did you mean 'set'?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_axis_is_one_line(written: Path, old: str, new: str, error: str) -> None:
    said = changed(written, old, new)
    assert said.startswith("small.toml:")
    assert said.partition(": ")[2] == error


def test_it_is_written_and_read_back(written: Path) -> None:
    scenario = Scenario.load(written).with_axes(["point=1*"])
    again = Scenario.parse(scenario.to_toml(), "again.toml")
    assert (again.vary, again.axes) == (scenario.vary, scenario.axes)
    assert scenario.scripts() == [written.with_name("points.csv")]


@pytest.mark.parametrize("name", ["n", "mean", "unit", "goodput_mbps"])
def test_an_axis_has_no_name_of_a_column(plain: str, name: str) -> None:
    scenario = Scenario.parse(f'{plain}\n[vary.{name}]\na = {{}}\nb = {{ "link.path0.loss" = "1 %" }}', "small.toml")
    with pytest.raises(ScenarioError, match=f"axis '{name}' has the name of a column of the results"):
        points(scenario)


def test_a_table_is_filled_and_its_files_are_beside_the_scenario(plain: str, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("name,file\nslow,slow.trace\nfast,fast.trace\n")
    for name, text in (("slow", "10\n"), ("fast", "5\n")):
        (tmp_path / f"{name}.trace").write_text(text)
    axis = '[vary.point]\ncsv = "points.csv"\nset = { "link.path0.rate" = { trace = "{file}" } }\n'
    file = tmp_path / "small.toml"
    file.write_text(f"{plain}\n{axis}")
    found = points(Scenario.load(file))
    traces = [point.plan.data["links"][0]["forward"]["trace"] for point in found]
    assert traces == [{"name": "slow.trace", "gaps_ms": [[10, 1]]}, {"name": "fast.trace", "gaps_ms": [[5, 1]]}]
    said = changed(file, '{ trace = "{file}" }', "\"{ trace = '{file}' }\"")
    assert said.endswith('is a text, not a table; write it without quotes around it, as { trace = "{file}" }')
