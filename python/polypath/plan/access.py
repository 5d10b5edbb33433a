"""What is asked of a plan's tables by name: directions, ends, settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from polypath.plan.types import Application, Node, Plan, Stack, Work

Side: TypeAlias = Literal["client", "server"]
Way: TypeAlias = Literal["forward", "backward"]
End: TypeAlias = Literal["a", "b"]

SIDES: Final[tuple[Side, Side]] = ("client", "server")
WAYS: Final[tuple[Way, Way]] = ("forward", "backward")
ENDS: Final[tuple[End, End]] = ("a", "b")


def settings_of_host(node: Node) -> Stack:
    """The transport settings of a node that is a host."""
    found = node.get("stack")
    assert found is not None
    return found


def setting(work: Work, name: str) -> Any:
    """A setting that some kinds of applications have; None for the others."""
    return cast(Mapping[str, Any], work).get(name)


def own_stack(application: Application, side: str) -> Stack | None:
    """Where the application's client or server differs from its host's settings; None: it does not."""
    return application.get("client_stack") if side == "client" else application.get("server_stack")


def stack(plan: Plan, application: Application, side: Side) -> Stack | None:
    """The transport settings in force at an end of an application: its own, else the host's."""
    return own_stack(application, side) or plan["nodes"][application[side]].get("stack")
