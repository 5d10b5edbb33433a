"""Polypath, a multipath transport lab.

    run = polypath.run("scenario.toml", seed=3, out="results")     # or a lab: "aggregation/mptcp"
    run["iperf"].goodput_mbps                                      # a connection, by the name of its application
    run["iperf"].subflows.to_polars()                              # its subflows, as a polars DataFrame
    run.plot.rate()                                                # matplotlib's axes
    swept = polypath.sweep("scenario.toml", {"defaults.scheduler": ["default", "blest"]}, seeds=10)
    polypath.compare(swept, by="defaults.scheduler")               # differences within seeds, with intervals
    polypath.load("results")                                       # what was written
    polypath.from_pcap("client.pcapng")                            # a capture of real traffic

Errors are PolypathError; each names its place and what to do.
"""

from __future__ import annotations

import os
from importlib import import_module

#: That of typing would take longer to import than all of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from polypath import labs, plots, sweeps
    from polypath.capture import CaptureError
    from polypath.engines import EngineError
    from polypath.errors import PolypathError
    from polypath.interface import across, along, compare, from_pcap, load, run, sweep
    from polypath.measures.summary import summary
    from polypath.recorded import Record
    from polypath.results import MetricError, OutputError, Recording
    from polypath.scenario import Plan, Scenario, ScenarioError
    from polypath.stepping import Run

    #: The version of the package.
    __version__: str

#: Where each name comes from. It is imported when it is first used, as is each of these parts.
_PARTS = {
    "CaptureError": "capture",
    "EngineError": "engines",
    "MetricError": "results",
    "OutputError": "results",
    "Plan": "scenario",
    "PolypathError": "errors",
    "Record": "recorded",
    "Recording": "results",
    "Run": "stepping",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "across": "interface",
    "along": "interface",
    "compare": "interface",
    "from_pcap": "interface",
    "load": "interface",
    "run": "interface",
    "summary": "measures",
    "sweep": "interface",
}
#: Parts that are used by their own name.
_MODULES = ("labs", "plots", "sweeps")

if _native := os.environ.get("POLYPATH_CORE"):
    import_module("polypath.extension").install(_native)


if not TYPE_CHECKING:  # a module that has this would have every name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            found = import_module("polypath._core").version()
        elif name in _PARTS.values() or name in _MODULES:
            found = import_module(f"polypath.{name}")
        elif name in _PARTS:
            found = getattr(import_module(f"polypath.{_PARTS[name]}"), name)
        else:
            raise AttributeError(f"module 'polypath' has no attribute '{name}'")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "CaptureError",
    "EngineError",
    "MetricError",
    "OutputError",
    "Plan",
    "PolypathError",
    "Record",
    "Recording",
    "Run",
    "Scenario",
    "ScenarioError",
    "__version__",
    "across",
    "along",
    "compare",
    "from_pcap",
    "labs",
    "load",
    "plots",
    "run",
    "summary",
    "sweep",
    "sweeps",
]
