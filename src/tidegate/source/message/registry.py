"""Lists the value formats: a line for each value of the option `format`."""

from __future__ import annotations

from functools import lru_cache

from tidegate.errors import OptionError
from tidegate.source.message.value import ValueFormat, ValueLayout, ValueLook
from tidegate.source.registry import loaded
from tidegate.source.subscription import Reading

VALUE_FORMATS: dict[str, str] = {
    "json": "tidegate.source.message.text:JsonValueFormat",
    "csv": "tidegate.source.message.text:CsvValueFormat",
    "avro": "tidegate.source.message.avro.format:AvroValueFormat",
    "protobuf": "tidegate.source.message.protobuf.format:ProtobufValueFormat",
}
"""The class of each format, by its name; imported on first use."""


def open_values(look: ValueLook) -> ValueLayout:
    """Open the values of a stream in the format that its options name."""
    format_ = value_format(look.reading.get("format"))
    check_values(look.reading, format_, look.where)
    return format_.open(look)


@lru_cache
def value_format(name: str) -> ValueFormat:
    """The format of a name that `Reading` has checked."""
    found: ValueFormat = loaded(VALUE_FORMATS[name])()
    return found


def check_values(reading: Reading, format_: ValueFormat, where: str) -> None:
    """Refuse options that mean nothing for a format, and types that its values cannot hold."""
    for name, _ in reading.options:
        if name not in ("format", *format_.options):
            raise OptionError(
                where,
                f"option {name} is not for {format_.title} values",
                f"format '{format_.name}'",
                f"Options for {format_.title} values: {', '.join(('format', *format_.options))}.",
            )
    if not format_.nested:
        reading.refuse_nested(where)
