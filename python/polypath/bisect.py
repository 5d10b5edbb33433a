"""The first commit of a kernel repository with which a scenario's figure is another one."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from polypath.engines.base import EngineError

_STATE: Final = "steps.json"
_TREE: Final = "tree"


@dataclass(frozen=True)
class Step:
    """A commit that was tried."""

    commit: str
    subject: str
    #: None: it was skipped, and `verdict` says why.
    value: float | None
    #: good, bad, or why there is no figure.
    verdict: str


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    commit: str
    subject: str
    #: Commits without a figure, of which each may be the first as well.
    others: Sequence[str] = ()


class Repository:
    """A git repository, of which nothing but a list of worktrees changes. Raises EngineError."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._git("rev-parse", "--git-dir", why=f"{path} is no git repository")

    def commit(self, name: str) -> str:
        """The commit of that name."""
        return self._git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}", why=f"no commit '{name}'")

    def require_before(self, good: str, bad: str) -> None:
        """Raises EngineError unless `bad` comes after `good`."""
        if good == bad:
            raise EngineError("--good and --bad are the same commit")
        why = "--good is no ancestor of --bad; the commit where they part may do"
        self._git("merge-base", "--is-ancestor", good, bad, why=why)

    def subject(self, commit: str) -> str:
        return self._git("log", "-1", "--format=%s", commit)

    def candidates(self, good: Sequence[str], bad: str) -> list[str]:
        """Those between, `bad` among them, the ones that halve them best first."""
        listed = self._git("rev-list", "--bisect-all", bad, *(f"^{each}" for each in good))
        return [line.split()[0] for line in listed.splitlines()]

    def check_out(self, commit: str, folder: Path) -> None:
        """Leaves the commit's files in a worktree there."""
        if (folder / ".git").exists():
            self._git("-C", str(folder), "checkout", "--quiet", "--force", "--detach", commit)
        else:
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._git("worktree", "prune")
            self._git("worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)

    def remove(self, folder: Path) -> None:
        if (folder / ".git").exists():
            self._git("worktree", "remove", "--force", str(folder))

    def _git(self, *words: str, why: str | None = None) -> str:
        done = subprocess.run(["git", "-C", str(self.path), *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise EngineError(why or f"git: {said[-1] if said else f'exit code {done.returncode}'}")
        return done.stdout.strip()


class Bisection:
    """A search whose steps are kept in a folder, so that the same search goes on where it was."""

    def __init__(self, repository: Repository, good: str, bad: str, folder: Path) -> None:
        """Raises EngineError for commits that are none, or are not in this order."""
        self._repository = repository
        self._good, self._bad = repository.commit(good), repository.commit(bad)
        repository.require_before(self._good, self._bad)
        self._folder = folder
        self.steps: list[Step] = self._kept()

    def run(self, figure: Callable[[Path], float | None]) -> Iterator[Step]:
        """Tries commits and yields each step, the kept ones first.

        `figure` gives that of a folder with the commit's files, None where the run has none. Its EngineError skips a
        commit after the first two. Raises EngineError where these do not differ.
        """
        ends = [self._tried(each, figure, ends=True) for each in (self._good, self._bad)]
        for step in ends:
            yield step
            if step.value is None:
                raise EngineError(f"{step.commit[:12]} has no figure: {step.verdict}")
        if ends[0].value == ends[1].value:
            raise EngineError(f"--good and --bad have the same figure, {ends[0].value:g}")
        while (commit := self._next()) is not None:
            yield self._tried(commit, figure)

    def found(self) -> Found:
        """Where the search ended."""
        good, bad, skipped = self._known()
        left = [each for each in self._repository.candidates(good, bad) if each != bad and each in skipped]
        return Found(bad, self._repository.subject(bad), left)

    def close(self) -> None:
        """Removes the worktree."""
        self._repository.remove(self._folder / _TREE)

    def _known(self) -> tuple[list[str], str, set[str]]:
        good = [self._good, *(step.commit for step in self.steps if step.verdict == "good")]
        bad = [step.commit for step in self.steps if step.verdict == "bad"]
        skipped = {step.commit for step in self.steps if step.value is None}
        return list(dict.fromkeys(good)), bad[-1] if bad else self._bad, skipped

    def _next(self) -> str | None:
        good, bad, skipped = self._known()
        left = self._repository.candidates(good, bad)
        return next((each for each in left if each != bad and each not in skipped), None)

    def _tried(self, commit: str, figure: Callable[[Path], float | None], ends: bool = False) -> Step:
        for step in self.steps:
            if step.commit == commit:
                return step
        tree = self._folder / _TREE
        self._repository.check_out(commit, tree)
        try:
            value, why = figure(tree), "no figure"
        except EngineError as error:
            if ends:
                raise
            value, why = None, str(error)
        step = Step(
            commit, self._repository.subject(commit), value, why if value is None else self._verdict(commit, value)
        )
        self.steps.append(step)
        self._keep()
        return step

    def _verdict(self, commit: str, value: float) -> str:
        """Whose figure it is nearer to; a tie is good."""
        if commit in (self._good, self._bad):
            return "good" if commit == self._good else "bad"
        values = {step.commit: step.value for step in self.steps}
        good, bad = values[self._good], values[self._bad]
        assert good is not None
        assert bad is not None
        return "bad" if abs(value - bad) < abs(value - good) else "good"

    def _kept(self) -> list[Step]:
        try:
            data = json.loads((self._folder / _STATE).read_text(encoding="utf-8"))
            return [Step(**each) for each in data]
        except (OSError, ValueError, TypeError):
            return []

    def _keep(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = self._folder / f".{_STATE}.partial"
        partial.write_text(json.dumps([asdict(step) for step in self.steps], indent=2) + "\n", encoding="utf-8")
        partial.replace(self._folder / _STATE)


def key(parts: Mapping[str, Any]) -> str:
    """The name of a search that is the same whenever it is asked for."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
