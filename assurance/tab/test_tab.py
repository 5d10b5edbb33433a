"""A preset of the day records the same in a browser's tab."""

from __future__ import annotations

import datetime

import pytest

from polypath.playground import PlaygroundError, require_built

from .__main__ import presets, recorded, text


def test_a_preset_of_the_day_records_the_same() -> None:
    try:
        require_built()
    except PlaygroundError as error:
        pytest.skip(str(error))
    every = presets()
    (found,) = recorded([every[datetime.date.today().toordinal() % len(every)]])
    assert found.tab == found.here, found.said
    assert "In 1 of 1 presets" in text([found])
