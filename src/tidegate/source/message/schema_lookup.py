"""Finds the schema of values, in a file or in a schema registry that the options name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.errors import GateError, OptionError, RunError, SourceError, near
from tidegate.kafka.schema_registry import RegisteredSchema, SchemaRegistry
from tidegate.kafka.wire import HEADER_BYTES, schema_id
from tidegate.source.message.value import ValueLayout, ValueLook
from tidegate.source.shape import check_lossless, spelling
from tidegate.storage import disk

OPTIONS = ("registry", "subject", "version", "schema")


@dataclass(frozen=True)
class RegisteredValues(ValueLayout):
    """Values that are read with one schema, from a registry or a file.

    `reader_id` is the schema's id in the registry; 0 for a file, whose digest is `digest`.
    Checkpoints keep one of the two: the schema is fixed when a stream is first read.
    """

    where: str
    schema: pa.Schema
    types_from: str
    reader_id: int
    digest: str
    registry: SchemaRegistry | None

    @abstractmethod
    def read_by(self, found: RegisteredSchema) -> RegisteredValues:
        """The same values, read with another schema of the registry."""

    def raw(self, value: bytes) -> str:
        return value.hex()

    def saved(self) -> Mapping[str, Any]:
        return {"schema_id": self.reader_id} if self.reader_id else {"digest": self.digest}

    def restored(self, saved: Mapping[str, Any] | None) -> RegisteredValues:
        if saved is None or saved == self.saved():
            return self
        found = first_schema(saved, self.registry, self.digest, self.where)
        return self if found is None else self.read_by(found)


def registry_of(look: ValueLook) -> SchemaRegistry | None:
    """The registry of the values, None without one; refuses options that need one, or conflict."""
    url = look.reading.get("registry")
    for name in ("subject", "version"):
        if url is None and look.reading.get(name) is not None:
            raise OptionError(
                look.where,
                f"option {name} names a schema of a registry",
                "no registry",
                "Say OPTIONS (registry 'http://localhost:8081').",
            )
    for name in ("subject", "version"):
        if look.reading.get("schema") is not None and look.reading.get(name) is not None:
            raise OptionError(
                look.where,
                "the schema to read with must be one",
                f"option schema and option {name}",
                f"Leave one of them out; without {name} a file may be read with beside a registry.",
            )
    return None if url is None else SchemaRegistry(url)


def registered(registry: SchemaRegistry, look: ValueLook, kind: str) -> RegisteredSchema:
    """The schema with which a stream is read; refuses a subject that has none of this kind."""
    subject = look.reading.get("subject") or look.subject
    version = look.reading.get("version") or "latest"
    try:
        found = registry.of_subject(subject, version)
        if found is None:
            there = registry.subjects()
            known = subject in there
            raise SourceError(
                look.where,
                "the schema registry must have the schema",
                f"no version {version} of subject {subject}" if known else f"no subject {subject}",
                "Name another version." if known else near(subject, there),
            )
    except RunError as error:
        raise SourceError(error.where, error.requirement, error.got, error.remedy) from error
    if found.kind != kind:
        raise SourceError(
            look.where,
            f"subject {subject} must have a schema of kind {kind}",
            found.kind,
            "Name the format that the values have, or another subject.",
        )
    return found


def read_schema_file(path: str, look: ValueLook) -> bytes:
    """The bytes of the file that the option `schema` names."""
    try:
        return disk.read(path)
    except OSError as error:
        raise SourceError(
            look.where,
            "the file of the option schema must be readable",
            f"{path}: {error.strerror or error}",
            "Name a file that is there.",
        ) from None


def declared_columns(
    declared: pa.Schema | None, found: pa.Schema, what: str, where: str
) -> pa.Schema:
    """The columns to read: the declared ones, or all that the schema has (`found`).

    Refuses a declared column that is absent, or that cannot hold the schema's type without loss.
    """
    if declared is None:
        return found
    for field in declared:
        name = spelling(field.name, found.names)
        if name is None:
            must = f"declared columns must be in {what}"
            raise SourceError(where, must, f"no column {field.name}", near(field.name, found.names))
        check_lossless(field, found.field(name).type, where, within=f" in {what}")
    return declared


def first_schema(
    saved: Mapping[str, Any], registry: SchemaRegistry | None, digest: str, where: str
) -> RegisteredSchema | None:
    """The registry's schema with which the run began; None where it began with a file.

    Refuses a file with another digest than the saved one, and a registry without the schema.
    """
    if registry is not None and "schema_id" in saved:
        found = registry.by_id(int(saved["schema_id"]))
        if found is None:
            raise GateError(
                where,
                "the schema registry must have the schema that the run began with",
                f"no schema {saved['schema_id']}",
                "Name the registry that has it, or start from an empty checkpoint.",
            )
        return found
    if saved.get("digest") != digest:
        raise GateError(
            where,
            "the file of the option schema must be the one that the run began with",
            "another content",
            "Put the file back as it was, or start from an empty checkpoint.",
        )
    return None


def schema_of_kind(registry: SchemaRegistry, id_: int, kind: str) -> RegisteredSchema | str:
    """The schema of an id, or why no value of this kind can have it."""
    found = registry.by_id(id_)
    if found is None:
        return f"the schema registry has no schema {id_}"
    return found if found.kind == kind else f"schema {id_} is of kind {found.kind}, not {kind}"


def decode_by_halves(
    values: Sequence[Any],
    decode: Callable[[Sequence[Any]], tuple[pa.Table, dict[int, str]]],
    schema: pa.Schema,
    misfits: tuple[type[Exception], ...],
) -> tuple[pa.Table, dict[int, str]]:
    """Decode values to rows of `schema`, and say by place why some cannot be.

    `decode` does it for many values at once. Where it raises one of `misfits`, which do not say the
    value that is to blame, halves are decoded: O(log n) calls for each value that does not fit.
    """
    try:
        return decode(values)
    except misfits as error:
        if len(values) == 1:
            return schema.empty_table(), {0: str(error)}
    half = len(values) // 2
    left, wrong = decode_by_halves(values[:half], decode, schema, misfits)
    right, more = decode_by_halves(values[half:], decode, schema, misfits)
    return pa.concat_tables([left, right]), wrong | {i + half: why for i, why in more.items()}


def unregistered(registry: SchemaRegistry, values: Sequence[bytes], kind: str) -> dict[int, str]:
    """The values that do not begin with the id of a schema of this kind: why, by their places."""
    known: dict[bytes, str | None] = {}
    wrong = {}
    for place, value in enumerate(values):
        head = value[:HEADER_BYTES]
        if head not in known:
            known[head] = _unregistered(registry, head, kind)
        why = known[head]
        if why is not None:
            wrong[place] = why
    return wrong


def _unregistered(registry: SchemaRegistry, head: bytes, kind: str) -> str | None:
    id_ = schema_id(head)
    if isinstance(id_, str):
        return id_
    found = schema_of_kind(registry, id_, kind)
    return found if isinstance(found, str) else None
