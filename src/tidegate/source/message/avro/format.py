"""The value format Avro: the reader's schema from a file or a registry, the writer's by its id.

The reader's schema is fixed when a stream is first read; checkpoints keep its id, or the digest of
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
        """The places of the values of each writer's schema; by place, why others have none."""
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
        """The writer's schema that the first bytes of a value name, or why there is none."""
        assert self.registry is not None, "values without a registry have no id"
        id_ = schema_id(head)
        if isinstance(id_, str):
            return id_
        found = schema_of_kind(self.registry, id_, "AVRO")
        if isinstance(found, str):
            return found
        try:
            writer = parse_avro(found.text, found.named)
        except AvroSchemaError as error:
            return f"schema {id_} cannot be read: {error}"
        why = misfit(writer, self.reader)
        return f"schema {id_} does not resolve to the one of the run: {why}" if why else writer

    def _decoded(
        self, writer: AvroType, values: Sequence[bytes], schema: pa.Schema
    ) -> tuple[pa.Table, dict[int, str]]:
        """Rows of values that one writer's schema describes, and why others have none."""
        program, names = program_of(writer), self._names(schema)
        skip = 0 if self.registry is None else HEADER_BYTES

        def decode(some: Sequence[bytes]) -> tuple[pa.Table, dict[int, str]]:
            streams = run(program, some, skip)
            columns = columns_of(program, streams, self.reader, names)
            return self._table(columns, schema, streams.rows), streams.wrong

        return decode_by_halves(values, decode, schema, (MisfitError, pa.ArrowInvalid))

    def _names(self, schema: pa.Schema) -> list[str]:
        names = [f.name for f in self.reader.fields]
        return [found for n in schema.names if (found := spelling(n, names)) is not None]

    def _table(self, columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.Table:
        """The columns of `schema`; one that the reader's schema does not have is NULL."""
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
