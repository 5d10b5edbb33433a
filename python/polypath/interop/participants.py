"""The stacks that meet each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from polypath.stacks import STACKS

#: The transport parameter initial_max_path_id of RFC 10069.
EXTENSION: Final = "RFC 10069, initial_max_path_id (0x3e)"


@dataclass(frozen=True)
class Participant:
    """A stack as the value of `stack`."""

    name: str
    #: Its name with its version.
    title: str
    #: Which version of the multipath extension it speaks.
    speaks: str
    #: What it cannot do as a server here, by the name of a case: a reason.
    lacks: Mapping[str, str]
    multipath: bool = True

    def cannot(self, case: str, multipath: bool, serves: bool) -> str | None:
        """Why it cannot play a case as client or server, if it cannot."""
        if multipath and not self.multipath:
            return f"{self.name} has one path"
        return self.lacks.get(case) if serves else None

    def missing(self) -> str | None:
        """Why it cannot take part, in one line; None where it can."""
        kind = STACKS.get(self.name)
        return None if kind is None else kind.missing()


def _title(name: str) -> str:
    kind = STACKS[name]
    return kind.title if kind.missing() is not None else kind.version()


#: What its source names; the codepoints are those of the RFC.
_DRAFT_20: Final = "draft-ietf-quic-multipath-20, the same parameter; at most three paths as it ships"
_NO_RETRY: Final = "aioquic leaves Retry to its application, and this one sends none"

PARTICIPANTS: Final[Mapping[str, Participant]] = {
    each.name: each
    for each in (
        Participant("polypath", "Polypath", EXTENSION, {}),
        Participant("noq", "noq-proto 1.4", EXTENSION, {}),
        Participant("picoquic", _title("picoquic"), _DRAFT_20, {}),
        Participant("aioquic", _title("aioquic"), "none: one path", {"retry": _NO_RETRY}, multipath=False),
    )
}
