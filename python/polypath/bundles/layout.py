"""What is where in a bundle."""

from __future__ import annotations

from typing import Final

#: Has every other file of the bundle with its SHA-256, and which of its folders are results.
INDEX: Final = "bundle.json"
#: The name that RO-Crate 1.2 gives it ("RO-Crate Metadata Document").
CRATE: Final = "ro-crate-metadata.json"
README: Final = "README.md"
ENVIRONMENT: Final = "environment.json"
RESULTS: Final = "results"
TABLES: Final = "tables"
ADDED: Final = "added"

#: Of a folder that `polypath rerun` made.
UNPACKED: Final = "bundle"
AGAIN: Final = "results"
OUTCOME: Final = "rerun.json"

KIND: Final = "bundle"
FORMAT: Final = 1
