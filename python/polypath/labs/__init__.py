"""The catalogue of labs: one folder each, with the scenario, its runs, what is expected of them, and a text for the reader."""

from polypath.labs.catalogue import catalogue, get
from polypath.labs.lab import Expectation, Lab, LabRun

__all__ = ["Expectation", "Lab", "LabRun", "catalogue", "get"]
