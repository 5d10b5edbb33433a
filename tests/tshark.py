"""The fields of a capture's frames, as Wireshark reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def fields(capture: Path, wanted: str, *names: str) -> list[list[str]]:
    """A row for each frame that a display filter lets through. Whoever has several questions asks for all at once."""
    columns = [word for name in names for word in ("-e", name)]
    command = ["tshark", "-r", str(capture), "-Y", wanted, "-T", "fields", *columns]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in ran.stdout.splitlines()]
