"""What is recorded of a run beside the tables that each run has.

It is described once. Options of commands, keywords of `polypath.run`, points of sweeps, folders of results and the
table `[record]` of a scenario follow from the fields of `Record`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, get_args

Captures = Literal["none", "hosts", "links"]

#: Folders of a result.
CAPTURE: Final = "capture"
QLOG: Final = "qlog"


@dataclass(frozen=True)
class Said:
    """What is said of something that may be recorded."""

    help: str
    #: Of commands; empty: it has no option of its own, and is a name of `--record`.
    option: str = ""
    #: Below a result's folder, where it needs one.
    folder: str = ""
    choices: tuple[str, ...] = ()


def _said(help: str, option: str = "", folder: str = "", choices: tuple[str, ...] = ()) -> Mapping[str, Said]:
    return {"said": Said(help, option, folder, choices)}


@dataclass(frozen=True)
class Record:
    """What is recorded beside the tables that each run has; by default nothing."""

    captures: Captures = field(
        default="none",
        metadata=_said("Captures at hosts or on links; needs --out.", "--pcap", CAPTURE, get_args(Captures)),
    )
    qlogs: bool = field(
        default=False, metadata=_said("Write a qlog of each side of QUIC; needs --out.", "--qlog", QLOG)
    )
    segments: bool = field(default=False, metadata=_said("One row per segment, for time-sequence plots."))
    #: None: with a folder, unless there are too many connections to read.
    account: bool | None = field(
        default=None,
        metadata=_said("The capacity of the links that bound a connection, and the causes of unused capacity."),
    )

    def in_files(self) -> Iterator[str]:
        """The options of what needs a folder, of what is asked for."""
        for each in fields(self):
            said = SAID[each.name]
            if said.folder and getattr(self, each.name) != each.default:
                yield said.option

    def unknown(self) -> tuple[str, str, tuple[str, ...]] | None:
        """A name that is none, with what it is of and the names there are."""
        for name, said in SAID.items():
            if said.choices and getattr(self, name) not in said.choices:
                return name, str(getattr(self, name)), said.choices
        return None


SAID: Final[Mapping[str, Said]] = {each.name: each.metadata["said"] for each in fields(Record)}

#: What `--record` takes: keys of a scenario's `[record]`, which a command sets.
NAMED: Final = tuple(name for name, said in SAID.items() if not said.option)
