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

def carry(
    plan_json: str, ports_json: str, interfaces: Sequence[int], stop: int, now_ns: int, log: str
) -> tuple[int, int, int, int]:
    """Carries frames between TAP interfaces over the plan's network, in real time, until `stop` can be read.

    It takes the descriptors over. `now_ns` is the run's time at the call, negative before it begins. Gives the packets
    that it carried, passed over and let expire, and how late in ns the latest was. Raises PlanError and OSError.
    """

def registry(kind: str) -> str:
    """The algorithms of a kind as a JSON list. Raises KeyError for an unknown kind."""

def works() -> list[tuple[str, str, float]]:
    """Name, description and simulated seconds of each benchmark."""

def bench(name: str, seconds: float) -> str:
    """Runs a benchmark for some simulated seconds; what it did as JSON. Raises KeyError for an unknown name."""

def version() -> str: ...
