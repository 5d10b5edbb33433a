"""The same run is the same to the last byte, in one process and in another with another hash seed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from polypath import engines, labs

from .conftest import Polypath

#: Losses, so that random draws take part, and two paths.
SETTINGS = ("application.iperf.duration=500 ms", "link.path0.loss=1 %", "link.path1.jitter=1 ms")


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_twice_in_one_process(tmp_path: Path) -> None:
    lab = labs.get("aggregation")
    (run,) = [run for run in lab.runs if run.name == "mptcp"]
    plan = lab.scenario().with_settings([*run.settings, *SETTINGS]).plan(7)
    seen = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        recording = engines.get("sim").run(plan, engines.Options("hosts", tmp_path / name))
        seen.append((recording.metadata.recording_sha256, _digests(tmp_path / name)))
    assert seen[0] == seen[1]
    assert list(seen[0][1]) == ["client.pcapng", "server.pcapng"]
    other = engines.get("sim").run(lab.scenario().with_settings([*run.settings, *SETTINGS]).plan(8))
    assert other.metadata.recording_sha256 != seen[0][0]


def test_every_file_in_two_processes_with_different_hash_seeds(polypath: Polypath, tmp_path: Path) -> None:
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    folders: list[dict[str, str]] = []
    manifests: list[dict[str, Any]] = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        ran = polypath(
            "run", "aggregation", *settings, "--pcap", "hosts", "--out", out, environment={"PYTHONHASHSEED": seed}
        )
        assert ran.returncode == 0, ran.stderr
        digests = _digests(out)
        for manifest in [name for name in digests if name.endswith("manifest.json")]:
            del digests[manifest]
            manifests.append(json.loads((out / manifest).read_text()))
            assert manifests[-1].pop("wall_s") > 0
        folders.append(digests)
    assert folders[0] == folders[1]
    runs = len(manifests) // 2
    assert runs == len(labs.get("aggregation").runs)
    assert manifests[:runs] == manifests[runs:]
    assert {"mptcp/capture/client.pcapng", "mptcp/plan.json", "mptcp/summary.json", "mptcp/events.parquet"} <= set(
        folders[0]
    )
