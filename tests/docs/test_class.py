"""The links of the page for a class lead to settings that the playground has."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

from polypath.labs import get
from polypath.playground import of_lab

PAGE = Path(__file__).parents[2] / "docs" / "class.md"


def test_each_link_names_a_preset_and_its_settings() -> None:
    links = re.findall(r"\(playground:([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) > 15
    for link in links:
        (_, name), *given = parse_qsl(link, strict_parsing=True)
        (preset,) = (each for each in of_lab(get(name.partition("/")[0])) if each.name == name)
        if not given:
            continue
        data = preset.data()
        knobs = {knob["key"]: knob for knob in data["knobs"]}
        for key, value in given:
            if key == "event":
                _, place, kind = value.split("~")
                assert any(each["name"] == kind and place in each["links"] for each in data["events"]["kinds"])
            elif knobs[key]["kind"] == "choice":
                assert value in [option["name"] for option in knobs[key]["options"]]
            else:
                assert knobs[key]["min"] <= float(value) <= knobs[key]["max"]
