"""Which value formats there are: a line for each name that the option `format` may have."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

import pyarrow as pa

from tidegate.errors import OptionError
from tidegate.source.message.value import ValueFormat, ValueLayout, ValueLook
from tidegate.source.subscription import Reading

VALUE_FORMATS: dict[str, str] = {
    "json": "tidegate.source.message.text:JsonValueFormat",
    "csv": "tidegate.source.message.text:CsvValueFormat",
    "avro": "tidegate.source.message.avro.format:AvroValueFormat",
    "protobuf": "tidegate.source.message.protobuf.format:ProtobufValueFormat",
}
"""By name the class of a format; imported when it is asked for."""


def open_values(look: ValueLook) -> ValueLayout:
    """How the values of a stream are decoded, in the format that its options name."""
    format_ = value_format(look.reading.get("format"))
    check_values(look.reading, format_, look.where)
    return format_.open(look)


@lru_cache
def value_format(name: str) -> ValueFormat:
    """The format of a name that `Reading` has checked."""
    module, _, kind = VALUE_FORMATS[name].partition(":")
    found: ValueFormat = getattr(import_module(module), kind)()
    return found


def check_values(reading: Reading, format_: ValueFormat, where: str) -> None:
    """Refuse options that mean nothing for a format, and types that its values cannot hold."""
    for name in reading.given:
        if name not in ("format", *format_.options):
            raise OptionError(
                where,
                f"option {name} is not for {format_.title} values",
                f"format '{format_.name}'",
                f"Options for {format_.title} values: {', '.join(('format', *format_.options))}.",
            )
    for column in () if format_.nested else reading.schema or ():
        if pa.types.is_nested(column.type):
            raise OptionError(
                where,
                f"column {column.name} must be of a type that one cell can hold",
                str(column.type),
                "Declare it STRING.",
            )
