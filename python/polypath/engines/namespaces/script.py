"""A shell script that sets a network up, and the batch files that it feeds to `ip` and `tc`."""

from __future__ import annotations

SETUP = "setup.sh"


class Script:
    """Lines of the script, and files by name for the run's folder."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._files: dict[str, str] = {}

    @property
    def files(self) -> dict[str, str]:
        return {**self._files, SETUP: "\n".join(self.lines) + "\n"}

    def batch(self, tool: str, space: str | None, lines: list[str], name: str) -> None:
        """Has `ip` or `tc` do these lines in a namespace, or in the script's own."""
        if not lines:
            return
        self._files[name] = "\n".join(lines) + "\n"
        where = f" -n {space}" if space else ""
        self.lines.append(f"{tool}{where} -batch {name}")

    def ip(self, space: str | None, lines: list[str], name: str = "ip") -> None:
        self.batch("ip", space, lines, f"{name}-{space or 'all'}.batch")

    def inside(self, space: str, lines: list[str], name: str) -> None:
        """Runs shell commands in a namespace."""
        file = f"{name}-{space}.sh"
        self._files[file] = "\n".join(lines) + "\n"
        self.lines.append(f"ip netns exec {space} sh -e {file}")
