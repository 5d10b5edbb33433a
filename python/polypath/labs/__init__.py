"""The catalogue of labs: a folder each, with a scenario, its runs, what is expected of them, and a text to read."""

from polypath.labs.catalogue import catalogue, find, get, names
from polypath.labs.lab import Expectation, Lab, LabRun, Question

__all__ = ["Expectation", "Lab", "LabRun", "Question", "catalogue", "find", "get", "names"]
