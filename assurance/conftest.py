"""Campaigns are tried in the surroundings of the tests, and on the Recording that these have made by hand."""

from tests.conftest import forgetful, piped, recording

__all__ = ["forgetful", "piped", "recording"]
