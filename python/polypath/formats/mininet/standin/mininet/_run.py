"""Runs a topology class: the request is on standard input, the answer on standard output, both as JSON."""

from __future__ import annotations

import ast
import difflib
import functools
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _by_hand, _guard, _net, _place, _python_2
from ._controllers import LEARNING, controllers
from ._describe import described
from ._place import Refused
from ._placeholder import Finder
from .topo import LinearTopo, MinimalTopo, SingleSwitchReversedTopo, SingleSwitchTopo, Topo
from .topolib import TorusTopo, TreeTopo

#: What `mn --topo` knows by itself.
BUILT_IN: dict[str, type[Topo]] = {
    "linear": LinearTopo,
    "minimal": MinimalTopo,
    "reversed": SingleSwitchReversedTopo,
    "single": SingleSwitchTopo,
    "torus": TorusTopo,
    "tree": TreeTopo,
}
#: The name of the module that a file is.
_NAME = "mininet_topology"


class _Wrong(Exception):
    """A fault of the file or of what was asked for; `line` is None for the latter."""

    def __init__(self, message: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


def main() -> None:
    """Answers one request."""
    request = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    _guard.limit(request["cpu_s"], request["memory_bytes"], request["answer_bytes"])
    text = json.dumps(_answer(request))
    answer.write(text)
    answer.flush()
    os._exit(0)  # what the file left behind, threads or functions at exit, does not run


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        found = _topology(request)
        if _place.refusals:
            raise _place.refusals[0]
        return found
    except (_Wrong, Refused) as error:
        first = _place.refusals[0] if _place.refusals else error
        return {"error": {"message": first.message, "line": first.line, "hint": first.hint}}
    except MemoryError:
        return {"error": {"message": "it takes more memory than an import may", "line": None, "hint": None}}


def _topology(request: dict[str, Any]) -> dict[str, Any]:
    _place.file = request["file"] or ""
    left_out: list[str] = []
    known: dict[str, Any] = {}
    sys.meta_path.append(Finder())
    if request["file"] is not None:
        tree = _guarded(functools.partial(ast.parse, request["text"], _place.file))
        left_out = _require_representable(tree, leave_out=request["leave_controllers_out"])
        sys.path.append(request["folder"])
        sys.argv = [_place.file]
        logging.FileHandler._open = _log_nowhere  # type: ignore[assignment, method-assign]
        by_hand = _by_hand.functions(tree) if request["name"] is None else None
        _guard.watch()
        if by_hand is not None:
            made = _by_hand.built(tree, by_hand, functools.partial(_executed, tree), _guarded)
            if made is None:
                raise _Wrong("it builds no network: none of its code makes a Mininet(..) without arguments")
            return {**_guarded(functools.partial(described, made)), "name": _own_name(), "left_out": left_out}
        known = _names(_executed(tree), chosen=request["name"])
    else:
        _guard.watch()
    name = request["name"]
    if name is None:
        name = _only(known)
    every = {**BUILT_IN, **known}
    if name not in every:
        names = known or every
        hint = (difflib.get_close_matches(name, every, n=1) or [None])[0]
        there = "" if hint else f"; there is {', '.join(names)}"
        raise _Wrong(f"no topology is named '{name}'{there}", None, hint)
    made = _guarded(functools.partial(every[name], *request["arguments"], **request["keywords"]), name)
    if not isinstance(made, Topo):
        raise _Wrong(f"topology '{name}' is of type {type(made).__name__}, which is no Topo")
    if not hasattr(made, "g"):
        raise _Wrong(f"topology '{name}' was made without Topo.__init__; call super().__init__()")
    return {**_guarded(functools.partial(described, made), name), "name": name, "left_out": left_out}


def _require_representable(tree: ast.Module, *, leave_out: bool) -> list[str]:
    """Raises _Wrong for controllers that a scenario cannot have; gives those that are left out."""
    found = [each for each in controllers(tree) if each.kind]
    if leave_out:
        return [f"{each.name} ({each.kind})" for each in found]
    for each in found:
        if each.kind not in LEARNING:
            what = f"controller '{each.name}' is of class {each.kind}, which cannot take part in a simulation"
            raise _Wrong(f"{what}; --no-controllers leaves it out", each.line)
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise _Wrong(
            f"several controllers ({names}): a scenario has one; --no-controllers leaves them out", found[1].line
        )
    return []


def _own_name() -> str:
    """The file's name without its ending."""
    return Path(_place.file).stem


def _log_nowhere(_: logging.FileHandler) -> Any:
    """A log that the file would write is not kept."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _executed(tree: ast.Module, name: str = _NAME) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name, "__file__": _place.file}
    code = _guarded(functools.partial(compile, tree, _place.file, "exec", dont_inherit=True))
    _guarded(functools.partial(exec, code, names))
    return names


def _names(found: dict[str, Any], *, chosen: str | None) -> dict[str, Any]:
    """What of a file can be chosen: its `topos`, or its classes where it has none or one of them is asked for."""
    topos = found.get("topos")
    if topos is not None and not (isinstance(topos, dict) and all(map(callable, topos.values()))):
        raise _Wrong("'topos' is no table of topologies by name, {'mytopo': MyTopo}")
    classes = {
        name: each
        for name, each in found.items()
        if isinstance(each, type) and issubclass(each, Topo) and each.__module__ == _NAME
    }
    if topos and (chosen is None or chosen in topos or chosen not in classes):
        return {str(name): each for name, each in topos.items()}
    bases = {base for each in classes.values() for base in each.__mro__[1:]}
    return {name: each for name, each in classes.items() if chosen is not None or each not in bases}


def _only(known: dict[str, Any]) -> str:
    if not known:
        raise _Wrong("there are no 'topos' and no class of Topo in it: nothing to import")
    if len(known) > 1:
        raise _Wrong(f"it has several topologies; choose one with --topo: {', '.join(known)}")
    return next(iter(known))


def _guarded(call: Callable[[], Any], topology: str | None = None) -> Any:
    """What a call of the file's code gives; whatever it raises becomes one line."""
    try:
        return call()
    except (Refused, _Wrong, _net.Done, MemoryError):
        raise
    except SyntaxError as error:
        raise _Wrong(_python_2.syntax(error), error.lineno) from error
    except SystemExit as error:
        raise _Wrong(_exit(error), _last_line(error)) from error
    except RecursionError as error:
        raise _Wrong("RecursionError: it calls itself without end", _last_line(error)) from error
    except BaseException as error:
        line = _last_line(error)
        where = f"topology '{topology}': " if topology is not None and line is None else ""
        raise _Wrong(f"{where}{_said(error)}", line) from error


def _exit(error: SystemExit) -> str:
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if frames and Path(frames[-1]).name in ("argparse.py", "optparse.py"):
        return "it needs arguments on its command line, and an import gives none; give them defaults in the file"
    return "it ends the process (sys.exit)"


def _said(error: BaseException) -> str:
    if text := _python_2.runtime(error):
        return text
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:
        text = "?"
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def _last_line(error: BaseException) -> int | None:
    """The last line of the file that was on the way to the error."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == _place.file]
    return lines[-1] if lines else None
