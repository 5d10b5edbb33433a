"""The catalogue of labs: a folder each, with a scenario, its runs, what is expected of them, and a text to read."""

from polypath.labs.catalogue import catalogue, get, names
from polypath.labs.lab import Expectation, Lab, LabRun

__all__ = ["Expectation", "Lab", "LabRun", "catalogue", "get", "names"]
