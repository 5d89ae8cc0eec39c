"""Records in a checkpoint the query that made its state, so that a later start can compare.

The fingerprint says whether a query is the same; the lines here say what is different, in the words
of the query, and whether the state can still be read. They are divided in two: what the state of a
subquery means, and what follows it, which may be changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.plan.compatibility.fingerprint import meaning
from tidegate.plan.physical import Prefix
from tidegate.plan.prefix import join_text, spark_sql
from tidegate.plan.pushdown import EarlierRows, Leaf
from tidegate.schema import type_name

_PHYSICAL = re.compile("`([a-z][0-9]+)`")

_UNKNOWN = 1_000
"""Where an earlier version did not record how many names were used: more than any query has."""

READY = "tuples wait until they are ready"
"""Said of streams where that is so: else state has been made of tuples that are not."""

Texts = Mapping[str, str]
"""By column of an operator (k0, a1, l2), what it is in the words of the query."""


@dataclass(frozen=True)
class Record:
    """What one subquery means.

    `state` says what it keeps, but for the columns that hold it: `columns` are these, by the names
    they have in segments; a later query may use fewer of them. Without `state` nothing is kept.
    `after` says by port what is done with its rows. `used` is the first number that no column ever
    had in its name: segments may still have columns that a query left out. `adds` are those of
    `columns` that may begin without what came before; it is for this query only.
    """

    state: tuple[str, ...] = ()
    columns: Texts = field(default_factory=dict)
    after: tuple[tuple[str, ...], ...] = ()
    used: int = 0
    adds: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedSubquery:
    """A record with the subquery's name and whose rows it takes: a name and a port for each.

    `name` is what the checkpoint calls it, `title` what a person does, where that is another.
    """

    name: str
    record: Record
    inputs: tuple[tuple[str, int], ...] = ()
    title: str = ""

    @property
    def lines(self) -> list[str]:
        """All that can be shown of it."""
        return [*self.record.state, *(line for port in self.record.after for line in port)]

    @property
    def kept(self) -> list[str]:
        """What its state holds, in an order that does not depend on the names of columns."""
        return sorted(f"keeps {text}" for text in self.record.columns.values())

    def to_dict(self) -> dict[str, Any]:
        record = self.record
        return {
            "name": self.name,
            "title": self.title,
            "state": list(record.state),
            "columns": dict(record.columns),
            "after": [list(port) for port in record.after],
            "used": record.used,
            "inputs": [list(taken) for taken in self.inputs],
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> RecordedSubquery:
        record = Record(
            state=tuple(fields["state"]),
            columns=dict(fields["columns"]),
            after=tuple(tuple(port) for port in fields["after"]),
            used=int(fields.get("used", _UNKNOWN)),
        )
        inputs = tuple((str(name), int(port)) for name, port in fields["inputs"])
        return RecordedSubquery(
            fields["name"], record, inputs, fields.get("title") or fields["name"]
        )


@dataclass(frozen=True)
class RecordedQuery:
    """A whole query as a checkpoint keeps it; grows with the text of the query.

    `streams` says what the gate has to do with, in the order of the plan, `outputs` which there
    are.
    """

    fingerprint: str
    streams: tuple[str, ...]
    outputs: tuple[str, ...]
    subqueries: tuple[RecordedSubquery, ...]
    reads: Texts = field(default_factory=dict)
    """By column that it reads of a stream, `stream.column`, its type."""

    def find(self, name: str) -> RecordedSubquery | None:
        return next((s for s in self.subqueries if s.name == name), None)

    @property
    def stateful(self) -> tuple[RecordedSubquery, ...]:
        return tuple(s for s in self.subqueries if s.record.state)

    def after(self, old: RecordedQuery) -> RecordedQuery:
        """The same on the checkpoint of another one, whose names of columns stay used."""
        known = {s.name: s.record.used for s in old.subqueries}
        return replace(
            self,
            subqueries=tuple(
                replace(s, record=replace(s.record, used=max(s.record.used, known.get(s.name, 0))))
                for s in self.subqueries
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, for the manifest."""
        return {
            "fingerprint": self.fingerprint,
            "streams": list(self.streams),
            "outputs": list(self.outputs),
            "subqueries": [s.to_dict() for s in self.subqueries],
            "reads": dict(self.reads),
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> RecordedQuery:
        """What `to_dict` gave."""
        return RecordedQuery(
            fingerprint=fields["fingerprint"],
            streams=tuple(fields["streams"]),
            outputs=tuple(fields["outputs"]),
            subqueries=tuple(RecordedSubquery.from_dict(s) for s in fields["subqueries"]),
            reads=dict(fields.get("reads", {})),
        )


def input_lines(leaf: Leaf, side: str = "") -> list[str]:
    """Where tuples come from and which of them count; AND joins conditions in any order."""
    origin = leaf.origin
    of = f"{origin.name} {origin.edge.port + 1}" if isinstance(origin, EarlierRows) else origin.name
    conditions = [f"{side}where {written(e)}" for e in leaf.where]
    tables = [f"{side}{join_text(table)}" for table in leaf.tables]
    return [f"{side}from {of}", *tables, *sorted(conditions)]


def prefix_texts(prefixes: Sequence[Prefix]) -> dict[str, str]:
    """What each output of the prefixes is; of a union, what it is in each of its parts."""
    texts: dict[str, str] = {}
    for place, (name, _) in enumerate(prefixes[0].sql_outputs):
        each = [meaning(prefix.sql_outputs[place][1]) for prefix in prefixes]
        texts[name] = each[0] if len(set(each)) == 1 else " | ".join(each)
    return texts


def typed_texts(prefixes: Sequence[Prefix], texts: Texts) -> dict[str, str]:
    """The same with their types, for what is kept of them."""
    return {n: f"{texts[n]} ({type_name(e.type)})" for n, e in prefixes[0].outputs}


def written(expression: Any, texts: Texts | None = None) -> str:
    """What an expression means, with `texts` for the columns of an operator."""
    text = meaning(spark_sql(expression))
    return text if texts is None else _PHYSICAL.sub(lambda m: texts.get(m[1], m[0]), text)
