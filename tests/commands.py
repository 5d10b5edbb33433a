"""The command line in this process: what it prints and how it ends is what it does in a process of its own."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from polypath import cli
from polypath.cli import errors


def called(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> CompletedProcess[str]:
    """Runs a command, and gives its exit code and what it printed."""
    words = [str(argument) for argument in arguments]
    with pytest.raises(SystemExit) as ended:
        errors.run(lambda: cli.app(words, prog_name="polypath", standalone_mode=False))
    printed = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return CompletedProcess(words, code, printed.out, printed.err)
