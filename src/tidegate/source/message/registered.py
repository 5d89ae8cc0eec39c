"""Where the schema of values comes from: a file, or a schema registry that options name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate import disk
from tidegate.errors import GateError, OptionError, RunError, SourceError, near
from tidegate.kafka.schema_registry import RegisteredSchema, SchemaRegistry
from tidegate.kafka.wire import HEADER_BYTES, schema_id
from tidegate.schema import type_name
from tidegate.source.message.value import ValueLayout, ValueLook
from tidegate.source.shape import lossless, spelling

OPTIONS = ("registry", "subject", "version", "schema")


@dataclass(frozen=True)
class RegisteredValues(ValueLayout):
    """Values that are read with one schema, which a registry or a file has.

    `reader_id` is its id in the registry, 0 for that of a file, of which `digest` is the digest.
    Checkpoints keep either: the schema is fixed when a stream is first read.
    """

    where: str
    schema: pa.Schema
    types_from: str
    reader_id: int
    digest: str
    registry: SchemaRegistry | None

    @abstractmethod
    def read_by(self, found: RegisteredSchema) -> RegisteredValues:
        """The same values, read with another version of the registry."""

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
    """The registry that values are of; refuses options that mean nothing without one."""
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
    """The schema that a stream is read with; refuses a subject that has none of this kind."""
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
    """The columns to read of those that a schema has: the declared ones, or all of them.

    Refuses a declared column that is absent, or whose type does not hold the schema's without loss.
    """
    if declared is None:
        return found
    for field in declared:
        name = spelling(field.name, found.names)
        if name is None:
            must = f"declared columns must be in {what}"
            raise SourceError(where, must, f"no column {field.name}", near(field.name, found.names))
        type_ = found.field(name).type
        if not lossless(type_, field.type):
            raise SourceError(
                where,
                f"column {field.name} was declared {type_name(field.type).upper()}, and must be "
                "of a type that this holds without loss",
                f"{type_name(type_)} in {what}",
                f"Declare it {type_name(type_).upper()}, and use CAST in the query.",
            )
    return declared


def first_schema(
    saved: Mapping[str, Any], registry: SchemaRegistry | None, digest: str, where: str
) -> RegisteredSchema | None:
    """The schema of the registry that a run began with; None for one in a file.

    Refuses another file than that one, which has the digest, and a registry without the schema.
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


def unregistered(registry: SchemaRegistry, values: Sequence[bytes], kind: str) -> dict[int, str]:
    """Why values do not begin with the id of a schema of a kind, by their places."""
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
    found = registry.by_id(id_)
    if found is None:
        return f"the schema registry has no schema {id_}"
    return None if found.kind == kind else f"schema {id_} is of kind {found.kind}, not {kind}"
