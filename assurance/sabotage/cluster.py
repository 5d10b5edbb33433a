"""A sweep on a Dask cluster of this machine whose parts die: the same command goes on, and nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path

from tests.clusters import Cluster
from tests.processes import wait

from .registry import Lost, sabotage
from .sweeps import LIMIT_S, POINTS, Place, kill


def _clustered(draw: random.Random, folder: Path, what: str) -> int:
    place, cluster = Place(folder / "home"), Cluster(folder / "dask")
    cluster.add()
    cluster.add()
    blows = draw.randint(1, 3)
    try:
        for _ in range(blows):
            process = place.start("--cluster", cluster.address)
            count = len(place.done()) + draw.randrange(1, POINTS // 2)
            wait(lambda count=count, process=process: len(place.done()) >= count or process.poll() is not None)  # type: ignore[misc]
            match what:
                case "worker":
                    cluster.kill(draw.randrange(len(cluster.workers)))
                    cluster.add()
                case "scheduler":
                    cluster.begin_anew()
                case _:
                    kill(process, draw, place.out)
            _, said = process.communicate(timeout=LIMIT_S)
            if "Traceback" in said:
                raise Lost(f"a traceback: {said.strip()}")
            place.keep_notes()
        place.finish("--cluster", cluster.address)
    finally:
        cluster.end()
    return blows


@sabotage("cluster-worker-killed", "cluster", "kill -9 of workers")
def worker(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "worker")


@sabotage("cluster-scheduler-killed", "cluster", "kill -9 of the scheduler with all its workers")
def scheduler(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "scheduler")


@sabotage("cluster-command-killed", "cluster", "kill -9 of the command")
def command(draw: random.Random, folder: Path) -> int:
    return _clustered(draw, folder, "command")
