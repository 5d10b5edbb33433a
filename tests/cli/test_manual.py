"""The manual page has every command and option, and man shows it without a complaint."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from polypath.cli import commands, manual


def plain(roff: str) -> str:
    """The words of the page, as a reader sees them."""
    text = re.sub(r"\\f[BR]", "", roff)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`").replace("\\&", "").replace("\\e", "\\")


def test_every_command_and_option_is_there() -> None:
    lines = plain(manual.page()).splitlines()
    for words, command in commands.walk():
        assert len(words) == 1 or f".SS {' '.join(words)}" in lines
        context = command.make_context(words[-1], [], resilient_parsing=True)
        records = [each.get_help_record(context) for each in command.get_params(context)]
        for name, text in filter(None, records):
            assert name in lines
            assert not text or " ".join(text.split()) in lines


def test_text_is_shown_as_it_is() -> None:
    assert manual._escaped(".a -b 'c' `d` e\\f") == "\\&.a \\-b \\(aqc\\(aq \\(gad\\(ga e\\ef"


def test_groff_shows_it_without_a_warning(polypath: Any, tmp_path: Path) -> None:
    file = tmp_path / "polypath.1"
    outcome = polypath("manual", "--out", file)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    ran = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-cbou", "-ww", str(file)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    words = " ".join(ran.stdout.split())
    assert "polypath run [OPTIONS] [LAB|SCENARIO.toml|PLAN.json|DIR]" in words
    assert "--set PATH=VALUE Change the scenario, e.g. --set 'link.path0.rate=10 Mbps'." in words
    assert polypath("manual", "--out", file).code == 0  # the same page again
    file.write_text("mine")
    assert polypath("manual", "--out", file).code == 2


def test_help_swallows_no_brackets() -> None:
    """What stands in brackets in a help text, rich takes for markup."""
    for words, command in commands.walk():
        context = command.make_context(words[-1], [], resilient_parsing=True)
        for each in command.get_params(context):
            assert not re.search(r"\[[a-z#/@][^\]]*\]", getattr(each, "help", None) or ""), words
