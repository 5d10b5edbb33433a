"""Running a plan's Python algorithms, and locating their failures in their files."""

from __future__ import annotations

import ast
import itertools
import json
import linecache
import sys
import traceback
import types
from typing import Any, Final

from polypath import _core
from polypath.engines import constructor
from polypath.engines.base import EngineError
from polypath.scenario.script import given
from polypath.stacks import STACKS, Stack

#: Tells the modules of one process apart.
_NUMBERS: Final = itertools.count(1)


class ScriptFailed(EngineError):
    """An algorithm in Python failed. `script` is its "FILE.py:CLASS", `source` what is in the file."""

    def __init__(self, message: str, script: str, source: str | None = None) -> None:
        super().__init__(message)
        self.script = script
        self.source = source


class Loader:
    """Makes what a plan carries in Python, and keeps why it could not. Python knows the modules until it is closed."""

    def __init__(self) -> None:
        self.failure: ScriptFailed | None = None
        #: Ctrl-C came while a file was loaded or an instance made.
        self.interrupted = False
        self._files: dict[str, tuple[str, str]] = {}

    def close(self) -> None:
        for name in self._files:
            sys.modules.pop(name, None)

    def file(self, made: object) -> tuple[str, str | None]:
        """The file that an instance's class is from, and what is in it."""
        module = type(made).__module__
        return self._files.get(module, (f"{module}.py", None))

    def __call__(self, kind: str, parameters: str) -> object:
        """An instance of the class. Raises ScriptFailed."""
        plan = json.loads(parameters)
        if kind == "stack":
            return _stack(plan)
        file, name, source, arguments = (plan[key] for key in ("file", "class", "source", "arguments"))
        # The name of a file may be that of a library, or of another file.
        module = types.ModuleType(f"{file.removesuffix('.py')}, {next(_NUMBERS)}")
        module.__file__ = file
        sys.modules[module.__name__] = module
        self._files[module.__name__] = (file, source)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
            made = getattr(module, name)(**{key: given(value) for key, value in arguments.items()})
            if kind == "congestion":
                _require_growth(made, name)
            return made
        except KeyboardInterrupt:
            self.interrupted = True
            raise
        except BaseException as error:  # what a file raises to end a program ends the run, too
            message = f"{_where(error, file) or file}: {_what(error)}"
            self.failure = ScriptFailed(message, f"{file}:{name}", source)
            raise self.failure from error

    def blamed(self) -> BaseException | None:
        """What stopped the making of an instance, of which Rust knows only the text: its failure, or Ctrl-C."""
        return KeyboardInterrupt() if self.interrupted else self.failure


class Reader:
    """As Loader, where nothing of what a plan carries is to be executed: it looks at the texts."""

    def __init__(self) -> None:
        self.failure: ScriptFailed | None = None

    def __call__(self, kind: str, parameters: str) -> object:
        """Stands for an instance. Raises ScriptFailed for arguments that the class does not take."""
        plan = json.loads(parameters)
        if kind == "stack":
            return _stack(plan)
        file, name, source = plan["file"], plan["class"], plan["source"]
        classes = (node for node in ast.parse(source, file).body if isinstance(node, ast.ClassDef))
        made = next(node for node in reversed(list(classes)) if node.name == name)
        if (fault := constructor.refused(made, plan["arguments"])) is not None:
            self.failure = ScriptFailed(f"{file}:{made.lineno}: {fault}", f"{file}:{name}", source)
            raise self.failure
        return object()


def _stack(settings: dict[str, Any]) -> Stack | None:
    """The stack by others of that name; None where it is not one that Python has. Raises Absent."""
    kind = STACKS.get(settings["name"])
    return None if kind is None else kind.make(settings)


def failed(error: _core.ScriptError, loader: Loader) -> ScriptFailed:
    """The failure in one line: file and line, what was raised, by which method, when."""
    what, made, method, seconds = error.args
    cause = error.__cause__
    code = getattr(getattr(type(made), method, None), "__code__", None)
    file, source = loader.file(made)
    place = None if cause is None else _where(cause, file)
    if place is None:
        place = file if code is None or code.co_filename != file else f"{file}:{code.co_firstlineno}"
    script = f"{file}:{type(made).__name__}"
    raised = what if cause is None else _what(cause)
    message = f"{place}: {raised} ({type(made).__name__}.{method}, {seconds:.6f} s into the run)"
    return ScriptFailed(message, script, source)


def _require_growth(made: object, name: str) -> None:
    """Raises TypeError for a congestion control whose window nothing would ever set."""
    wanted = "control" if getattr(made, "paces", False) else "on_ack"
    if not callable(getattr(made, wanted, None)):
        raise TypeError(f"{name} with paces = {getattr(made, 'paces', False)!r} has no method '{wanted}'")


def _where(error: BaseException, file: str) -> str | None:
    """The innermost line of the file that the error passed through, as "file:line"."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{lines[-1].lineno}" if lines else None


def _what(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
