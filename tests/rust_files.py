"""Which file of a Rust crate uses which, read from the names in its source.

A file uses the file that declares an item which it names. A module that passes the item on with `pub use` is not
used for it, and does not use it. Calls of methods name no file: an `impl` in a file of its own uses the file of its
type, not the other way round.

And how large the types of a crate are: fields and methods, whichever files these are in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

#: A module by its path from the root of the crate, which is the empty one.
Module = tuple[str, ...]

_USE = re.compile(r"(?P<shown>pub(?:\([^)]*\))?\s+)?\buse\s+(?P<tree>[^;]+);")
_PATH = re.compile(r"\b[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")
_INNER = re.compile(r"\bmod (\w+) \{")
_STRUCT = re.compile(r"\bstruct (\w+)")
_IMPL = re.compile(r"(?:unsafe )?impl ([\w:]+)")
_NO_CODE = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|\(in [\w:]+\)""")


def _parts(module: Module, source: str) -> Iterator[tuple[Module, str]]:
    """A file's modules, such as its tests, each with what is in it and in no inner one."""
    own = []
    while inner := _INNER.search(source):
        end, depth = inner.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(source[end], 0)
            end += 1
        own.append(source[: inner.start()])
        yield from _parts((*module, inner[1]), source[inner.end() : end - 1])
        source = source[end:]
    yield module, "".join([*own, source])


def _split(tree: str) -> Iterator[str]:
    """What commas part outside of braces."""
    depth, begin = 0, 0
    for at, sign in enumerate(tree):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and not depth:
            yield tree[begin:at]
            begin = at + 1
    if tree[begin:].strip():
        yield tree[begin:]


def _fields(body: str) -> Iterator[str]:
    """The fields of a struct: what commas part outside of brackets of any kind."""
    depth, begin = 0, 0
    for sign in re.finditer(r"->|[<>()\[\]{},]", body):
        depth += (sign[0] in "<([{") - (sign[0] in ">)]}")
        if sign[0] == "," and not depth:
            yield body[begin : sign.start()]
            begin = sign.end()
    if body[begin:].strip():
        yield body[begin:]


def imports(tree: str) -> Iterator[tuple[Module, str]]:
    """The paths of a `use`, each with the name by which the file knows it."""
    head, brace, rest = tree.strip().partition("{")
    before = tuple(re.findall(r"\w+", head))
    if brace:
        for each in _split(rest.rstrip().removesuffix("}")):
            for path, name in imports(each):
                yield (before + path, name) if path else (before, before[-1])
        return
    written, _, alias = tree.strip().partition(" as ")
    named = tuple(part for part in re.findall(r"[\w*]+", written) if part != "self")
    yield named, alias.strip() or (named[-1] if named else "")


def _blocks(source: str) -> Iterator[tuple[str, str]]:
    """What stands in braces at the outermost level, each with what leads to it: attributes and generics left out."""
    depth, begin = 0, 0
    for sign in re.finditer(r"[{};]", source):
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if sign[0] == "{" and depth == 1:
            head, begin = source[begin : sign.start()], sign.end()
        elif sign[0] == "}" and depth == 0:
            head = re.sub(r"#\[[^\]]*\]", "", head).replace("->", "")
            while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
                head = shorter
            yield " ".join(head.split()), source[begin : sign.start()]
            begin = sign.end()
        elif depth == 0:
            begin = sign.end()


class Size(NamedTuple):
    """How large a type is."""

    #: 0 if every one is public: nobody owns the fields of plain data.
    fields: int
    #: Without those of traits and of tests.
    methods: int


class Crate:
    """The modules of a crate that are files."""

    def __init__(self, sources: Mapping[Module, str]) -> None:
        self.modules = set(sources)
        self._named: dict[Module, list[Module]] = {module: [] for module in sources}
        self._passed_on: dict[Module, Module] = {}
        self._fields: Counter[Module] = Counter()
        self._methods: Counter[Module] = Counter()
        for module, source in sources.items():
            for part, text in _parts(module, _NO_CODE.sub("", source)):
                self._named[module].extend(self._read(part, text))
                if "tests" not in part:
                    self._measure(part, text)

    @classmethod
    def at(cls, folder: Path) -> Crate:
        def module(file: Path) -> Module:
            path = file.relative_to(folder).with_suffix("").parts
            return path[:-1] if path[-1] in ("mod", "lib") else path

        return cls({module(file): file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.rs"))})

    def _read(self, module: Module, source: str) -> Iterator[Module]:
        """What a module names, by paths from the root of the crate."""
        body = _USE.sub("", source)
        imported: dict[str, Module] = {}
        for use in _USE.finditer(source):
            for path, name in imports(use["tree"]):
                item = self._from_root(module, path)
                if item is None:
                    continue
                imported[name] = item
                if use["shown"]:
                    self._passed_on[(*module, name)] = item
                if not use["shown"] or re.search(rf"\b{re.escape(name)}\b", body):
                    yield item
        for path in _PATH.findall(body):
            first, *rest = path.split("::")
            item = (*imported[first], *rest) if first in imported else self._from_root(module, (first, *rest))
            if item is not None:
                yield item

    def _measure(self, module: Module, source: str) -> None:
        """Counts the fields of a module's structs, and the methods in it of whichever types."""
        imported = {name: path for use in _USE.finditer(source) for path, name in imports(use["tree"])}
        for head, body in _blocks(_USE.sub("", source)):
            if declared := _STRUCT.search(head):
                fields = [re.sub(r"#\[[^\]]*\]", "", field).strip() for field in _fields(body)]
                if not all(field.startswith("pub ") for field in fields):
                    self._fields[(*module, declared[1])] += len(fields)
            elif (of := _IMPL.match(head)) and " for " not in head:
                first, *rest = of[1].split("::")
                path = (*imported[first], *rest) if first in imported else (first, *rest)
                item = self._from_root(module, path) or (*module, *path)
                self._methods[item] += sum(len(re.findall(r"\bfn \w+", head)) for head, _ in _blocks(body))

    def sizes(self) -> dict[Module, Size]:
        """Each type that has fields of its own or methods, by its file and its name."""
        found: dict[Module, Counter[str]] = {}
        for kind, counts in (("fields", self._fields), ("methods", self._methods)):
            for item, count in counts.items():
                found.setdefault((*self._home(item), item[-1]), Counter())[kind] += count
        return {item: Size(counts["fields"], counts["methods"]) for item, counts in found.items()}

    def _from_root(self, module: Module, path: Module) -> Module | None:
        """The path from the root of the crate; nothing where another crate or a type comes first."""
        match path[0]:
            case "crate":
                return path[1:]
            case "self":
                return module + path[1:]
            case "super":
                ups = next((n for n, part in enumerate(path) if part != "super"), len(path))
                return module[: len(module) - ups] + path[ups:]
            case first if (*module, first) in self.modules:
                return module + path
        return None

    def _home(self, item: Module) -> Module:
        """The file that declares an item."""
        home = next(item[:n] for n in range(len(item), -1, -1) if item[:n] in self.modules)
        origin = self._passed_on.get(item[: len(home) + 1])
        return home if origin is None else self._home(origin + item[len(home) + 1 :])

    def uses(self, under: Module = ()) -> dict[Module, set[Module]]:
        """For each file below a module the others there that it uses."""
        inside = {module for module in self.modules if module[: len(under)] == under}
        return {module: {self._home(item) for item in self._named[module]} & inside - {module} for module in inside}


def ring(uses: Mapping[str, set[str]] | Mapping[Module, set[Module]]) -> list[str]:
    """Some that use each other in a circle, the first again at the end; none where there is an order."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return ["/".join(each) if isinstance(each, tuple) else each for each in reversed(error.args[1])]
    return []
