"""Sweeps: a scenario's axes, the points that they span, and running them.

scenario = polypath.Scenario.load("scenario.toml")      # with a table [vary]
result = polypath.sweep.run([polypath.sweep.Sweep("name", scenario, polypath.sweep.points(scenario))])[0]
result.points                                           # a polars DataFrame
"""

from polypath.sweep.grid import Point, points
from polypath.sweep.run import Progress, Result, Sweep, run

__all__ = ["Point", "Progress", "Result", "Sweep", "points", "run"]
