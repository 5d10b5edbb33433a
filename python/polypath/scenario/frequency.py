"""The frequency of acknowledgements that a host requests from its QUIC peer."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from polypath import units
from polypath.scenario.base import Model
from polypath.scenario.fields import Period, fault

#: What both stacks offer at least, and what no delay of acknowledgements reaches (RFC 9000 section 18.2), in ns.
LEAST_DELAY: Final = 1_000_000
TOO_LONG_DELAY: Final = 2**14 * 1_000_000
MOST_PACKETS: Final = 65_535


def _check_delay(value: int) -> int:
    if not LEAST_DELAY <= value < TOO_LONG_DELAY:
        least, most = units.TIME.format(LEAST_DELAY), units.TIME.format(TOO_LONG_DELAY)
        raise fault(f"must be at least {least} and below {most}, not {units.TIME.format(value)}")
    return value


class AckFrequency(Model):
    """What a peer is asked for (draft-ietf-quic-ack-frequency-14 section 4)."""

    packets: int = Field(ge=0, le=MOST_PACKETS)
    """Packets acknowledged together; 0: the extension is neither offered nor used."""
    max_delay: Annotated[Period, AfterValidator(_check_delay)] | None = None
    """Longest delay of an acknowledgement; default: the peer's own, 25 ms."""
    reordering: int = Field(default=3, ge=0, le=MOST_PACKETS)
    """Packet numbers by which a packet may be overtaken before it causes an immediate acknowledgement; 0: any
    number."""

    def planned(self) -> dict[str, Any]:
        """What the Plan has of it."""
        return {"packets": self.packets, "max_delay_ns": self.max_delay, "reordering": self.reordering}


OFF: Final = AckFrequency.model_construct(packets=0, max_delay=None, reordering=3)


class _OrNumber:
    """For the JSON Schema: `packets` alone."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        number = {"type": "integer", "minimum": 0, "maximum": MOST_PACKETS, "examples": [10]}
        return {"anyOf": [number, handler(schema)]}


def _read(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"packets": value}
    if isinstance(value, dict | AckFrequency):
        return value
    raise fault("expected a number of packets, such as 10, or a table")


def _write(value: AckFrequency) -> int | dict[str, Any]:
    written = value.model_dump(mode="json", exclude_defaults=True)
    return value.packets if len(written) == 1 else written


Frequency = Annotated[
    AckFrequency,
    BeforeValidator(_read),
    PlainSerializer(_write, return_type=int | dict[str, Any]),
    _OrNumber(),
]
"""The number of packets, or a table."""
