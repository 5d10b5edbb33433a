"""Tables with a `kind`, which may be written as its name alone."""

from __future__ import annotations

from typing import Any, Final, get_args

from pydantic import BaseModel, BeforeValidator, PlainSerializer


def _read(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


def _write(value: BaseModel) -> str | dict[str, Any]:
    written = value.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return str(written["kind"]) if len(written) == 1 else written


#: For an annotation: the name alone is read as a table, and a table with nothing else written as the name.
FROM_NAME: Final = BeforeValidator(_read)
TO_NAME: Final = PlainSerializer(_write, return_type=str | dict[str, Any])


def names(kinds: Any) -> str:
    """A pattern of the names of a union's kinds."""
    found = [get_args(each.model_fields["kind"].annotation)[0] for each in get_args(get_args(kinds)[0])]
    return f"^({'|'.join(found)})$"
