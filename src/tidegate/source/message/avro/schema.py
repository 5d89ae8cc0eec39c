"""Parses Avro schemas: JSON becomes a tree of types, in which names are already resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tidegate.errors import SourceError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

NO_DEFAULT = "no default"
"""Stands for a default that a field does not have; null is one."""

DEEPEST = 40
"""Levels of records, arrays, maps and unions; Arrow's messages hold no more than 64."""


class AvroSchemaError(ValueError):
    """Why a text is not an Avro schema, or describes values that no table can hold."""


@dataclass(frozen=True)
class AvroField:
    """A field of a record; `default` is JSON, as text."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: str = NO_DEFAULT


@dataclass(frozen=True)
class AvroType:
    """A type: its `kind`, in the specification's words, and the attributes of that kind.

    `name` is the full name of a record, an enum or a fixed. `parts` are the branches of a union, or
    the one type that an array or a map holds. `scale` and `precision` belong to decimals.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    parts: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    default_symbol: str | None = None
    size: int = 0
    logical: str | None = None
    precision: int = 0
    scale: int = 0

    @property
    def title(self) -> str:
        """As messages name it."""
        return self.logical or (f"{self.kind} {self.name}" if self.name else self.kind)


@lru_cache(maxsize=256)
def parse_avro(text: str, named: tuple[str, ...] = ()) -> AvroType:
    """The type of a schema's text; `named` are texts of schemas that it refers to by name."""
    scope = _Scope()
    try:
        for other in named:
            scope.read(json.loads(other), "", 0)
        return scope.read(json.loads(text), "", 0)
    except RecursionError as error:
        raise AvroSchemaError(f"nested deeper than {DEEPEST} levels") from error
    except json.JSONDecodeError as error:
        raise AvroSchemaError(f"not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise AvroSchemaError(f"{type(error).__name__} {error} where a type should be") from error


def record_of(text: str, where: str, named: tuple[str, ...] = ()) -> AvroType:
    """The record type of a schema; a SourceError for any other schema."""
    try:
        found = parse_avro(text, named)
        if found.kind != "record":
            raise AvroSchemaError(f"{found.title} at the top, where a record must be")
    except AvroSchemaError as error:
        raise SourceError(
            where,
            "the schema must be an Avro record that a table can hold",
            str(error),
            "Correct the schema, or name another one.",
        ) from error
    return found


@dataclass
class _Scope:
    """The named types read so far; a type is None while it is being read itself."""

    known: dict[str, AvroType | None] = field(default_factory=dict)

    def read(self, node: Any, namespace: str, depth: int) -> AvroType:
        if depth > DEEPEST:
            raise AvroSchemaError(f"nested deeper than {DEEPEST} levels")
        if isinstance(node, str):
            return AvroType(node) if node in PRIMITIVES else self._named(node, namespace)
        if isinstance(node, list):
            branches = tuple(self.read(n, namespace, depth + 1) for n in node)
            return AvroType("union", parts=branches)
        kind = node["type"]
        if not isinstance(kind, str):
            return self.read(kind, namespace, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._defined(kind, node, namespace, depth)
        if kind in ("array", "map"):
            part = node["items" if kind == "array" else "values"]
            return AvroType(kind, parts=(self.read(part, namespace, depth + 1),))
        if kind not in PRIMITIVES:
            return self._named(kind, namespace)
        return AvroType(kind, **_logical(node, kind, 0))

    def _named(self, name: str, namespace: str) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self.known else name
        if full not in self.known:
            raise AvroSchemaError(f"type {name}, which is not defined")
        found = self.known[full]
        if found is None:
            raise AvroSchemaError(f"type {name} inside itself, which no column can hold")
        return found

    def _defined(self, kind: str, node: Mapping[str, Any], around: str, depth: int) -> AvroType:
        space, _, last = str(node["name"]).rpartition(".")
        space = space or node.get("namespace", around) or ""
        name = f"{space}.{last}" if space else last
        aliases = tuple(str(a).rpartition(".")[2] for a in node.get("aliases", ()))
        self.known[name] = None
        if kind == "enum":
            symbols, default = tuple(node["symbols"]), node.get("default")
            made = AvroType("enum", name, aliases, symbols=symbols, default_symbol=default)
        elif kind == "fixed":
            size = int(node["size"])
            made = AvroType("fixed", name, aliases, size=size, **_logical(node, kind, size))
        else:
            fields = tuple(self._field(f, space, depth) for f in node["fields"])
            if not fields:
                raise AvroSchemaError(f"record {name} without fields, which no column can hold")
            made = AvroType("record", name, aliases, fields)
        self.known[name] = made
        return made

    def _field(self, node: Mapping[str, Any], namespace: str, depth: int) -> AvroField:
        default = json.dumps(node["default"]) if "default" in node else NO_DEFAULT
        type_ = self.read(node["type"], namespace, depth + 1)
        if "logicalType" in node and type_.kind in ("int", "long") and type_.logical is None:
            type_ = AvroType(type_.kind, **_logical(node, type_.kind, 0))
        return AvroField(str(node["name"]), type_, tuple(node.get("aliases", ())), default)


_LOGICAL = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    **dict.fromkeys(
        (f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros")),
        ("long",),
    ),
    "timestamp-nanos": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
    "decimal": ("bytes", "fixed"),
}
"""The kinds that each logical type may annotate; on others it is ignored, as specified."""

MOST_DIGITS = 38
"""The most digits of a decimal, as in Spark SQL; one with more stays bytes."""


def _logical(node: Mapping[str, Any], kind: str, size: int) -> dict[str, Any]:
    name = node.get("logicalType")
    if not isinstance(name, str) or kind not in _LOGICAL.get(name, ()):
        return {}
    if name == "uuid" and size not in (0, 16):
        return {}
    if name != "decimal":
        return {"logical": name}
    precision, scale = int(node.get("precision", 0)), int(node.get("scale", 0))
    if not 0 < precision <= MOST_DIGITS or not 0 <= scale <= precision:
        return {}
    return {"logical": name, "precision": precision, "scale": scale}
