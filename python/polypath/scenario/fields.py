"""The types of a scenario's fields: text with units outside, SI numbers inside.

Each is read by one function, written by its inverse, and described to editors by a pattern and examples.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from polypath import units
from polypath.units import Quantity, UnitError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FAULT = "polypath"
"""The type of our own validation errors; their context has `message`, `hint` and `at`, the path below the field."""


def fault(message: str, hint: str | None = None, at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """A validation error whose text is already fit for a person."""
    return PydanticCustomError(FAULT, "{message}", {"message": message, "hint": hint, "at": at})


class OrText:
    """For the JSON Schema of a table that may also be written as a text."""

    def __init__(self, pattern: str, *examples: str) -> None:
        self.text = {"type": "string", "pattern": pattern, "examples": list(examples)}

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.text, handler(schema)]}


def _reader(read: Callable[[object], Any]) -> Callable[[object], Any]:
    """`read` for a validator: units' errors become faults."""

    def validate(value: object) -> Any:
        try:
            return read(value)
        except UnitError as error:
            raise fault(error.message, error.hint) from error

    return validate


class Text:
    """For an annotation: a text outside, read by one function and written by its inverse.

    Its schema is made once. pydantic's validators and serializers would inspect the functions again for each field.
    """

    def __init__(
        self, value: CoreSchema, read: Callable[[object], Any], write: Callable[[Any], str], described: JsonSchemaValue
    ) -> None:
        written = core_schema.plain_serializer_function_ser_schema(write, return_schema=core_schema.str_schema())
        self._schema = core_schema.no_info_before_validator_function(_reader(read), value, serialization=written)
        self._described = described

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self._schema.copy()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return self._described.copy()


def _quantity(quantity: Quantity, *examples: str, positive: bool = False) -> Text:
    described = {"type": "string", "pattern": quantity.pattern(), "examples": list(examples)}
    return Text(core_schema.int_schema(), partial(quantity.parse, positive=positive), quantity.format, described)


Rate = Annotated[int, _quantity(units.RATE, "20 Mbps", "1.5 Gbps", "256 kbps", positive=True)]
"""Bit/s, more than zero."""
Time = Annotated[int, _quantity(units.TIME, "0 s", "20 ms", "1.5 s", "250 us")]
"""Nanoseconds."""
Period = Annotated[int, _quantity(units.TIME, "100 ms", "30 s", "5 min", positive=True)]
"""Nanoseconds, more than zero."""
Size = Annotated[int, _quantity(units.SIZE, "10 MB", "64 KiB", "1448 B", positive=True)]
"""Bytes, more than zero."""
Packets = Annotated[int, _quantity(units.PACKETS, "80 packets", positive=True)]
"""A number of packets, more than zero."""
Depth = Annotated[int, _quantity(units.SIZE, "15 kB", "0 B")]
"""Bytes."""

Share = Annotated[
    float,
    Text(
        core_schema.float_schema(),
        units.parse_share,
        units.format_share,
        {"type": "string", "pattern": units.SHARE_PATTERN, "examples": ["1 %", "0.05 %", "100 %"]},
    ),
]
"""A probability, from text in percent."""


def _read_buffer(value: object) -> list[int]:
    texts = [value] * 3 if not isinstance(value, list) else value
    if len(texts) != 3:
        raise fault("a buffer is one size, or three: minimum, default and maximum")
    least, default, most = (_reader(partial(units.SIZE.parse, positive=True))(text) for text in texts)
    if not least <= default <= most:
        raise fault("a buffer's minimum, default and maximum must not fall")
    return [least, default, most]


def _write_buffer(value: list[int]) -> str | list[str]:
    texts = [units.SIZE.format(size) for size in value]
    return texts[0] if is_fixed(value) else texts


def is_fixed(buffer: list[int]) -> bool:
    """Whether a buffer has one size only."""
    return buffer[0] == buffer[2]


_SIZE_SCHEMA = {"type": "string", "pattern": units.SIZE.pattern()}
Buffer = Annotated[
    list[int],
    BeforeValidator(_read_buffer),
    PlainSerializer(_write_buffer, return_type=str | list[str]),
    WithJsonSchema(
        {
            "anyOf": [_SIZE_SCHEMA, {"type": "array", "items": _SIZE_SCHEMA, "minItems": 3, "maxItems": 3}],
            "examples": ["1 MB", ["4 KiB", "128 KiB", "6 MiB"]],
        }
    ),
]
"""Minimum, default and maximum in bytes (Linux's tcp_rmem and tcp_wmem)."""

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
"""The limited broadcast address, which is nobody's (RFC 1122 section 3.2.1.3)."""


def _read_address(value: object) -> Address:
    if not isinstance(value, str):
        raise fault('expected an address such as "10.0.0.1" or "2001:db8::1"')
    try:
        address = ipaddress.ip_address(value)
    except ValueError as error:
        raise fault(f"{value!r} is no IPv4 or IPv6 address") from error
    if (
        address.is_unspecified
        or address.is_multicast
        or address.is_loopback
        or address == _BROADCAST
        or (isinstance(address, ipaddress.IPv6Address) and address.scope_id)
    ):
        raise fault(f"{value!r} cannot be the address of an interface")
    return address


_ADDRESS_SCHEMA = {"type": "string", "examples": ["10.0.0.1", "2001:db8::1"]}
IP = Annotated[
    Address,
    BeforeValidator(_read_address),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(_ADDRESS_SCHEMA),
]
"""A unicast IPv4 or IPv6 address."""


def _read_addresses(value: object) -> list[Address]:
    if value == []:
        raise fault("an interface needs an address, or none written at all")
    return [_read_address(item) for item in (value if isinstance(value, list) else [value])]


def _write_addresses(value: list[Address]) -> str | list[str]:
    return str(value[0]) if len(value) == 1 else [str(address) for address in value]


Addresses = Annotated[
    list[Address],
    BeforeValidator(_read_addresses),
    PlainSerializer(_write_addresses, return_type=str | list[str]),
    WithJsonSchema({"anyOf": [_ADDRESS_SCHEMA, {"type": "array", "items": _ADDRESS_SCHEMA}]}),
]
"""One address or several."""


def _read_network(value: object) -> Network:
    if not isinstance(value, str):
        raise fault('expected a prefix such as "10.0.0.0/24"')
    try:
        return ipaddress.ip_network(value)
    except ValueError as error:
        raise fault(f"{value!r} is no IPv4 or IPv6 prefix") from error


Prefix = Annotated[
    Network,
    BeforeValidator(_read_network),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["10.0.0.0/24", "10.0.1.1/32", "2001:db8::/64"]}),
]
"""An address prefix without host bits."""

NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$"
_NAME = re.compile(NAME_PATTERN)


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise fault(f"{value!r} is no name: letters, digits, '_' and '-', at most 63 of them")
    return value


KERNEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}$"


def _read_kernel(value: object) -> object:
    """A release is a name, which a command line or a file may give as a number."""
    if isinstance(value, float):
        return str(value)
    if not isinstance(value, str) or not re.fullmatch(KERNEL_PATTERN, value):
        raise fault(f"{value!r} is no kernel's name, such as 7.2 or mine; `polypath kernel list` shows them")
    return value


Kernel = Annotated[str, BeforeValidator(_read_kernel), WithJsonSchema({"type": "string", "pattern": KERNEL_PATTERN})]
"""The name of a kernel of engine linux."""

Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})]
"""The name of a host, link, interface or application."""
