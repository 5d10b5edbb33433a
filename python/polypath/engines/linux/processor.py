"""One of the machine's processors per guest.

A guest is one thread of work. Its kernel and its programs are host processes that switch at every system call. TCP at
19 Mbps has about 200,000 of them in ten simulated seconds. Between two processors, each switch would wake an idle one,
which costs more than the work itself.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "\0polypath-processor-{}"


@contextmanager
def reserved() -> Iterator[int | None]:
    """A processor that this process may use and no other guest has; None where each has one.

    A name in the kernel's abstract space is the reservation: it ends with its process, however that ends.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
        yield next((each for each in _candidates() if _taken(name, each)), None)


def _candidates() -> list[int]:
    """Those allowed, this thread's own first: guests that cannot see each other's names begin at different ones."""
    here = int(Path("/proc/thread-self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[36])
    return sorted(os.sched_getaffinity(0), key=lambda each: (each < here, each))


def _taken(name: socket.socket, processor: int) -> bool:
    try:
        name.bind(_NAME.format(processor))
    except OSError:
        return False
    return True
