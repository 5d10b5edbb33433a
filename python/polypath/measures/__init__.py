"""Every figure of a run, declared once: its name, its unit, what it is of, and how it is computed from a Recording.

A group of figures is a module with `FIGURES`. Claims of labs and rubrics, columns of sweeps, `compare`, summaries,
tables, plots and the page of all figures in the docs iterate over `REGISTRY`.
"""

from polypath.measures.measure import Figure, Measure
from polypath.measures.registry import MEASURES, REGISTRY, figure, short
from polypath.measures.summary import summary as summary

__all__ = ["MEASURES", "REGISTRY", "Figure", "Measure", "figure", "short", "summary"]
