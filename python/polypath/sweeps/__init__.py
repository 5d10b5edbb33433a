"""Sweeps: a scenario's axes, the points that they span, and running them.

scenario = polypath.Scenario.load("scenario.toml")      # with a table [vary]
result = polypath.sweeps.run([polypath.sweeps.Sweep("name", scenario, polypath.sweeps.points(scenario))])[0]
result.points                                           # a polars DataFrame
"""

from polypath.sweeps.grid import Point, points
from polypath.sweeps.run import Progress, Result, Sweep, run

__all__ = ["Point", "Progress", "Result", "Sweep", "points", "run"]
