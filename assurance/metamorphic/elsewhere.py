"""Answers for each scenario, a line of JSON, with what is compared of its run: the other process of `repeating`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from .case import Case
from .repeating import told


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            print(json.dumps(told(Case(json.loads(line), Path(folder)))), flush=True)


if __name__ == "__main__":
    main()
