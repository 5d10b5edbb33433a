"""Every fuzzer in turn, with a record that adds up over sittings.

usage: python -m assurance.fuzzing [--hours H] [--jobs N] [--only TEXT] [--out PAGE]
Goes on where the record ends. No hours only write the page. Exit code 1 if something crashed, after the command that
makes it crash again.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from .campaign import campaign
from .fuzzers import attacks, targets
from .page import write
from .record import Taken, lines, opened

#: Seconds of a slice: of a short campaign each fuzzer gets its share.
SHORTEST, LONGEST = 10, 120


def stopped(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m assurance.fuzzing", description=__doc__)
    reader.add_argument("--hours", type=float, default=0.1, help="CPU time")
    reader.add_argument("--jobs", type=int, default=1, help="how many run at once")
    reader.add_argument("--only", default="", metavar="TEXT", help="those whose names contain it")
    reader.add_argument("--out", type=Path, help="the page that gets the table between its markers")
    given = reader.parse_args()
    signal.signal(signal.SIGTERM, stopped)
    budget = given.hours * 3600
    again: list[str] = []
    try:
        if budget > 0:
            with opened() as record:
                fuzzers = [it for it in targets() + attacks() if given.only in it.name]
                share = round(budget / max(len(fuzzers), 1))
                slice_seconds = min(max(share, SHORTEST), LONGEST)
                again = campaign(fuzzers, record, budget, slice_seconds, max(given.jobs, 1))
    except (Taken, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        if given.out:
            write(lines(), given.out)
    for command in again:
        print(f"again: {command}")
    return int(bool(again))


if __name__ == "__main__":
    sys.exit(main())
