"""The native module: the simulator's door to Python."""

from collections.abc import Sequence
from typing import Literal, final

class PlanError(ValueError):
    """The plan is not one that the simulator can run; the message is one line."""

@final
class Table:
    """Rows of one table, as an Arrow stream (the Arrow PyCapsule interface)."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Recording:
    """The tables of docs/recording.md."""

    @property
    def names(self) -> Sequence[str]: ...
    def table(self, name: str) -> Table:
        """Raises KeyError for an unknown name."""
    @property
    def sha256(self) -> str:
        """Hash of all tables, equal for equal runs."""

@final
class Simulation:
    """A run in progress. Raises PlanError for a plan that it cannot run."""

    def __new__(
        cls, plan_json: str, captures: Literal["none", "hosts", "links"] = "none", directory: str | None = None
    ) -> Simulation: ...
    @property
    def now_ns(self) -> int:
        """Simulated time since the start of the run."""
    def step(self, until_ns: int) -> bool:
        """Advances to that time at most; true once the run has ended. Lets other threads run meanwhile."""
    def recording(self) -> Recording:
        """Ends the run, finished or not, closes its captures and gives what was recorded. At most once."""

def registry(kind: str) -> str:
    """The algorithms of a kind as a JSON list. Raises KeyError for an unknown kind."""

def works() -> list[tuple[str, str, float]]:
    """Name, description and simulated seconds of each benchmark."""

def bench(name: str, seconds: float) -> str:
    """Runs a benchmark for some simulated seconds; what it did as JSON. Raises KeyError for an unknown name."""

def version() -> str: ...
