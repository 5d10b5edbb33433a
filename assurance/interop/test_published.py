"""What the interoperability page says of aioquic; `cargo test -p polypath-interop` tests it of the peers in Rust."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pytest
from tests.slow import slow

ROOT = Path(__file__).parents[2]
MATRIX = ["cargo", "run", "--quiet", "--locked", "-p", "polypath-interop", "--example", "matrix", "--"]


def matrix(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MATRIX, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("seed", [slow(1), datetime.date.today().toordinal()])
def test_what_the_page_says_of_aioquic(seed: int) -> None:
    page = ["--check", "assurance/records/interop.md", "--seed", str(seed)]
    done = matrix("--python", sys.executable, "--peer", "aioquic", *page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_python_without_aioquic_is_reported(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    done = matrix("--python", str(python), "--case", "handshake", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert f"without aioquic: {python}: ModuleNotFoundError: No module named 'aioquic'" in done.stderr
    assert "handshake, quinn-proto 0.11.19 as Server: passed" in done.stdout
