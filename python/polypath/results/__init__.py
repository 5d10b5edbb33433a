"""Results: pure functions of a Recording from any engine."""

from polypath.results.errors import MetricError, UnknownName
from polypath.results.files import OutputError
from polypath.results.recording import Metadata, Recording

__all__ = ["Metadata", "MetricError", "OutputError", "Recording", "UnknownName"]
