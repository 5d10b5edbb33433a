"""A plan with what engines outside of the core take, and with what a capture tells in place of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from typing_extensions import ReadOnly

from polypath.plan.types import Plan


class Program(TypedDict):
    """A program of the machine on a host, which engines with real stacks run."""

    name: ReadOnly[str]
    host: ReadOnly[int]
    """Index into `nodes`."""
    transport: ReadOnly[str]
    command: ReadOnly[Sequence[str]]
    start_ns: ReadOnly[int]
    background: ReadOnly[bool]
    """The run does not wait for its end."""
    ends_run: ReadOnly[bool]
    environment: ReadOnly[Mapping[str, str]]
    files: ReadOnly[Mapping[str, str]]
    """Texts by name, in the folder that it runs in."""


class CapturedFile(TypedDict):
    file: ReadOnly[str]
    packets: ReadOnly[int]


class Capture(TypedDict):
    """What captures tell of themselves."""

    start_unix_ns: ReadOnly[int]
    """When time 0 was."""
    notes: ReadOnly[Sequence[str]]
    files: ReadOnly[Sequence[CapturedFile]]


class PlanData(Plan):
    """A plan as it is stored."""

    programs: NotRequired[ReadOnly[Sequence[Program]]]
    kernels: NotRequired[ReadOnly[Mapping[str, str]]]
    """Names of kernels by host, of hosts that have one of their own."""
    clients: NotRequired[ReadOnly[Sequence[int]]]
    """Hosts whose path managers are those of clients, where no application says it."""
    capture: NotRequired[ReadOnly[Capture]]
    """Present in place of a scenario's network: links have no rates and no delays."""
