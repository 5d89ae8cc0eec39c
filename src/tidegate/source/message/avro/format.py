"""The value format Avro: the reader's schema from a file or a registry, the writer's by its id.

The reader's schema is fixed when a stream is first read: checkpoints keep its id, or the digest of
its file. Values of other versions are resolved to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.errors import OptionError
from tidegate.kafka.schema_registry import RegisteredSchema
from tidegate.kafka.wire import HEADER_BYTES, schema_id
from tidegate.source.message.avro.arrow import arrow_schema
from tidegate.source.message.avro.column import MisfitError, columns_of, misfit
from tidegate.source.message.avro.program import program_of, run
from tidegate.source.message.avro.schema import AvroSchemaError, AvroType, parse_avro, record_of
from tidegate.source.message.registered import (
    OPTIONS,
    RegisteredValues,
    declared_columns,
    read_schema_file,
    registered,
    registry_of,
)
from tidegate.source.message.value import ValueFormat, ValueLook
from tidegate.source.shape import spelling

_HEADLESS = 0
"""Stands for the id of values that have none: their writer's schema is the reader's."""


@dataclass(frozen=True)
class AvroValues(RegisteredValues):
    """Values of Avro records; with a registry each begins with the id of its writer's schema.

    `reader` is the schema to read with.
    """

    reader: AvroType

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
        groups, wrong = self._by_writer(values)
        tables, places = [], []
        for writer, group in groups:
            own = [values[i] for i in group] if len(group) < len(values) else values
            table, faults = self._decoded(writer, own, schema)
            wrong |= {int(group[i]): why for i, why in faults.items()}
            tables.append(table)
            places.append(np.delete(group, sorted(faults)))
        if not tables:
            return schema.empty_table(), wrong
        if len(tables) == 1:
            return tables[0], wrong
        order = np.argsort(np.concatenate(places))
        return pa.concat_tables(tables).take(pa.array(order)), wrong

    def read_by(self, found: RegisteredSchema) -> AvroValues:
        reader = record_of(found.text, self.where, found.named)
        return replace(self, reader=reader, reader_id=found.id)

    def _by_writer(
        self, values: Sequence[bytes]
    ) -> tuple[list[tuple[AvroType, np.ndarray[Any, Any]]], dict[int, str]]:
        """The values of each writer's schema by their places, and why others have none."""
        if self.registry is None:
            return [(self.reader, np.arange(len(values)))] if values else [], {}
        heads = [v[:HEADER_BYTES] for v in values]
        if len(set(heads)) == 1:
            places = {heads[0]: np.arange(len(values))}
        else:
            listed: dict[bytes, list[int]] = {}
            for i, head in enumerate(heads):
                listed.setdefault(head, []).append(i)
            places = {head: np.array(found) for head, found in listed.items()}
        groups: list[tuple[AvroType, np.ndarray[Any, Any]]] = []
        wrong: dict[int, str] = {}
        for head, own in places.items():
            writer = self._writer(head)
            if isinstance(writer, str):
                wrong |= dict.fromkeys(own.tolist(), writer)
            else:
                groups.append((writer, own))
        return groups, wrong

    def _writer(self, head: bytes) -> AvroType | str:
        """The writer's schema by the first bytes of a value, or why there is none."""
        assert self.registry is not None, "values without a registry have no id"
        id_ = schema_id(head)
        if isinstance(id_, str):
            return id_
        found = self.registry.by_id(id_)
        if found is None:
            return f"the schema registry has no schema {id_}"
        if found.kind != "AVRO":
            return f"schema {id_} is of kind {found.kind}, not AVRO"
        try:
            writer = parse_avro(found.text, found.named)
        except AvroSchemaError as error:
            return f"schema {id_} cannot be read: {error}"
        why = misfit(writer, self.reader)
        return f"schema {id_} does not resolve to the one of the run: {why}" if why else writer

    def _decoded(
        self, writer: AvroType, values: Sequence[bytes], schema: pa.Schema
    ) -> tuple[pa.Table, dict[int, str]]:
        """Values of one writer; where some do not fit, they are searched for by halves."""
        program = program_of(writer)
        skip = 0 if self.registry is None else HEADER_BYTES
        streams = run(program, values, skip)
        try:
            return self._table(
                columns_of(program, streams, self.reader, self._names(schema)), schema, streams.rows
            ), streams.wrong
        except (MisfitError, pa.ArrowInvalid) as error:
            if len(values) == 1:
                return schema.empty_table(), {0: str(error)}
        half = len(values) // 2
        left, wrong = self._decoded(writer, values[:half], schema)
        right, more = self._decoded(writer, values[half:], schema)
        return pa.concat_tables([left, right]), wrong | {i + half: w for i, w in more.items()}

    def _names(self, schema: pa.Schema) -> list[str]:
        names = [f.name for f in self.reader.fields]
        return [found for n in schema.names if (found := spelling(n, names)) is not None]

    def _table(self, columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
        """Columns as they are asked for; one that the reader's schema does not have is NULL."""
        made = []
        for field in schema:
            name = spelling(field.name, list(columns))
            column = pa.nulls(rows, field.type) if name is None else columns[name]
            made.append(column if column.type == field.type else column.cast(field.type))
        return pa.table(made, schema=schema)


class AvroValueFormat(ValueFormat):
    """Avro, with a schema from a file or a registry: the values do not tell it."""

    name, title = "avro", "Avro"
    options = OPTIONS

    def open(self, look: ValueLook) -> AvroValues:
        registry, path = registry_of(look), look.reading.get("schema")
        if path is not None:
            text = read_schema_file(path, look).decode("utf-8", "replace")
            reader, id_, what = record_of(text, f"{look.where}, {path}"), 0, path
        elif registry is not None:
            found = registered(registry, look, "AVRO")
            text, id_, what = found.text, found.id, f"schema {found.id} of the registry"
            reader = record_of(text, look.where, found.named)
        else:
            raise OptionError(
                look.where,
                "values in Avro need their schema",
                "neither a file nor a registry",
                "Say OPTIONS (schema 'FILE.avsc') or OPTIONS (registry 'http://localhost:8081').",
            )
        columns = declared_columns(look.reading.schema, arrow_schema(reader), what, look.where)
        digest = sha256(text.encode()).hexdigest()[:16]
        from_ = "declared" if look.reading.schema is not None else f"as in {what}"
        return AvroValues(look.where, columns, from_, id_, digest, registry, reader)
