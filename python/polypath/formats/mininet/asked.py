"""The requested topology, as for `mn --topo`: "tree,depth=2,fanout=3"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polypath.scenario.errors import ScenarioError
from polypath.units import nearest

Argument = int | float | str


@dataclass(frozen=True)
class Asked:
    """A topology by name (None: the only one of a file) with the arguments of its class."""

    name: str | None = None
    arguments: Sequence[Argument] = ()
    keywords: Mapping[str, Argument] = field(default_factory=dict)
    #: As it was written.
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Asked:
        """Reads "NAME,ARGUMENT,KEY=ARGUMENT" of `--topo`; numbers become numbers. Raises ScenarioError."""
        return cls._parse(text, f"--topo {text}", "linear,4")

    @classmethod
    def _parse(cls, text: str, origin: str, example: str) -> Asked:
        name, *given = (part.strip() for part in text.split(","))
        if not name:
            raise ScenarioError(f"the name is missing, as in '{example}'", origin)
        arguments: list[Argument] = []
        keywords: dict[str, Argument] = {}
        for part in given:
            key, equals, value = part.partition("=")
            if not (value if equals else part) or (equals and not key.isidentifier()):
                raise ScenarioError(f"{part!r} is no argument such as '4' or 'depth=2'", origin)
            if equals and key in keywords:
                raise ScenarioError(f"'{key}' is given twice", origin)
            if equals:
                keywords[key] = _number(value)
            elif keywords:
                raise ScenarioError(f"{part!r} has no name, but an argument before it has", origin)
            else:
                arguments.append(_number(part))
        return cls(name, tuple(arguments), keywords, text)


#: What `mn --link` knows: whether tc shapes it.
_LINKS = {"default": False, "ovs": False, "tc": True, "tcu": True}


def link(text: str) -> dict[str, Argument]:
    """The options of links without a class, from `mn --link`'s "tc,bw=10,delay=5ms". Raises ScenarioError."""
    origin = f"--link {text}"
    asked = Asked._parse(text, origin, "tc,bw=10")
    assert asked.name is not None
    if asked.name not in _LINKS:
        hint = nearest(asked.name, _LINKS)
        there = "" if hint else f"; there is {', '.join(_LINKS)}"
        raise ScenarioError(f"no kind of link is named '{asked.name}'{there}", origin, None, hint)
    if asked.arguments:
        raise ScenarioError(f"{str(asked.arguments[0])!r} is no option such as 'bw=10'", origin)
    if asked.keywords and not _LINKS[asked.name]:
        raise ScenarioError(f"links of kind '{asked.name}' have no options; those of 'tc' have", origin)
    return dict(asked.keywords)


def _number(text: str) -> Argument:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
