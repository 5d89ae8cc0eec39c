"""The value format Protobuf: messages by a compiled descriptor, from a file or a registry.

Fields are known by their numbers, so messages of older and newer versions are read by the one
descriptor that a stream was first read with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pyarrow as pa

from tidegate.errors import OptionError, SourceError
from tidegate.kafka.schema_registry import RegisteredSchema
from tidegate.kafka.wire import HEADER_BYTES, message_place, schema_id
from tidegate.source.message.protobuf.column import UnheldError, column_types, field_column
from tidegate.source.message.protobuf.descriptor import (
    DescriptorError,
    find_message,
    library,
    message_at,
    message_class,
    place_of,
    registered_files,
    set_files,
)
from tidegate.source.message.schema_lookup import (
    OPTIONS,
    RegisteredValues,
    declared_columns,
    decode_by_halves,
    read_schema_file,
    registered,
    registry_of,
    schema_of_kind,
)
from tidegate.source.message.value import ValueFormat, ValueLook
from tidegate.source.shape import spelling


@dataclass(frozen=True)
class ProtobufValues(RegisteredValues):
    """Values that are messages; with a registry an id and the place of the message come first.

    `files` are the descriptors, `message` the full name.
    """

    files: tuple[bytes, ...]
    message: str

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
        from google.protobuf.message import DecodeError

        bodies, wrong = self._bodies(values)
        parse = message_class(self.files, self.message).FromString
        messages, places = [], []
        for i, body in enumerate(bodies):
            if i in wrong:
                continue
            try:
                messages.append(parse(body))
                places.append(i)
            except DecodeError as error:
                wrong[i] = f"not a message {self.message}: {error}"
        misfits = (pa.ArrowInvalid, OverflowError, UnicodeError)
        table, faults = decode_by_halves(
            messages, lambda some: (self._table(some, schema), {}), schema, misfits
        )
        return table, wrong | {places[i]: why for i, why in faults.items()}

    def read_by(self, found: RegisteredSchema) -> ProtobufValues:
        return replace(self, files=registered_files([*found.named, found.text]), reader_id=found.id)

    def _bodies(self, values: Sequence[bytes]) -> tuple[Sequence[bytes], dict[int, str]]:
        """The messages without the registry's header; by place, why some values have none."""
        if self.registry is None:
            return values, {}
        wrong: dict[int, str] = {}
        known: dict[tuple[int, tuple[int, ...]], str | None] = {}
        bodies = []
        for i, value in enumerate(values):
            body, why = b"", None
            id_ = schema_id(value[:HEADER_BYTES])
            place = id_ if isinstance(id_, str) else message_place(value)
            if isinstance(place, str) or isinstance(id_, str):
                why = str(place)
            else:
                body, key = value[place[1] :], (id_, place[0])
                if key not in known:
                    known[key] = self._other(*key)
                why = known[key]
            bodies.append(body)
            if why is not None:
                wrong[i] = why
        return bodies, wrong

    def _other(self, id_: int, place: tuple[int, ...]) -> str | None:
        """Why a schema's message at a path is not the one we read; None where it is."""
        assert self.registry is not None, "values without a registry have no id"
        found = schema_of_kind(self.registry, id_, "PROTOBUF")
        if isinstance(found, str):
            return found
        try:
            name = message_at(registered_files([*found.named, found.text]), place)
        except DescriptorError:  # source text: then the path must be that of our message
            own = message_class(self.files, self.message).DESCRIPTOR
            name = self.message if place_of(own) == place else None
        return None if name == self.message else f"message {name or place}, not {self.message}"

    def _table(self, messages: Sequence[Any], schema: pa.Schema) -> pa.Table:
        """Messages as columns; a column that the message type does not have is NULL."""
        fields = {f.name: f for f in message_class(self.files, self.message).DESCRIPTOR.fields}
        columns = []
        for asked in schema:
            name = spelling(asked.name, list(fields))
            if name is None:
                columns.append(pa.nulls(len(messages), asked.type))
                continue
            own = column_types(fields[name].containing_type, [name]).field(0).type
            column = field_column(messages, fields[name], own)
            columns.append(column if own == asked.type else column.cast(asked.type))
        return pa.table(columns, schema=schema)


class ProtobufValueFormat(ValueFormat):
    """Protobuf, with a compiled descriptor from a file or a registry."""

    name, title = "protobuf", "Protobuf"
    options = (*OPTIONS, "message")

    def open(self, look: ValueLook) -> ProtobufValues:
        library(look.where)
        registry, path = registry_of(look), look.reading.get("schema")
        registry = None if registry is None else replace(registry, form="serialized")
        if path is not None:
            files = set_files(read_schema_file(path, look), f"{look.where}, {path}")
            id_, what = 0, str(path)
        elif registry is not None:
            found = registered(registry, look, "PROTOBUF")
            files, id_ = _files(found.text, found.named, look), found.id
            what = f"schema {id_} of the registry"
        else:
            raise OptionError(
                look.where,
                "values in Protobuf need their descriptor",
                "neither a file nor a registry",
                "Say OPTIONS (schema 'FILE.desc', message 'package.Name') or OPTIONS (registry "
                "'http://localhost:8081').",
            )
        message = find_message(files, look.reading.get("message"), look.where)
        declared = look.reading.schema
        try:
            columns = column_types(message, None if declared is None else declared.names)
        except UnheldError as error:
            must = "each column must be of a type that a table can hold"
            remedy = "Declare the other columns: those that are not declared are not read."
            raise SourceError(look.where, must, str(error), remedy) from error
        columns = declared_columns(declared, columns, what, look.where)
        from_ = "declared" if declared is not None else f"as in {what}"
        name = str(message.full_name)
        digest = sha256(b"".join((name.encode(), *files))).hexdigest()[:16]
        return ProtobufValues(look.where, columns, from_, id_, digest, registry, files, name)


def _files(text: str, named: Sequence[str], look: ValueLook) -> tuple[bytes, ...]:
    try:
        return registered_files([*named, text])
    except DescriptorError as error:
        raise SourceError(
            look.where,
            "the schema registry must give the descriptor of the schema",
            str(error),
            "Compile it with protoc --include_imports --descriptor_set_out=FILE.desc, and say "
            "OPTIONS (schema 'FILE.desc').",
        ) from error
