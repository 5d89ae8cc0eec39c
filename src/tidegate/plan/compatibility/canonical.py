"""The canonical form of a plan, told in three ways that stay side by side here.

`mark` says exactly what is computed, over the names of columns in operators; its hash is the
fingerprint. `words` say the same in the words of the query, for the record of a checkpoint. What is
added to one of them without the other would let a checkpoint go on with another query. `shown` is
for people: `explain` adds where each part runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidegate.calendar.duration import duration_text
from tidegate.plan.compatibility.fingerprint import meaning
from tidegate.plan.compatibility.query_record import (
    READY,
    RecordedQuery,
    RecordedSubquery,
    Texts,
    written,
)
from tidegate.plan.lowering.rule import Lowered
from tidegate.plan.physical import Edge, Plan, Prefix, Subquery, Target
from tidegate.plan.prefix import spark_sql
from tidegate.plan.text_code import with_codes
from tidegate.query.definition import StreamDef
from tidegate.query.name import WINDOW, NamedExpr, is_column
from tidegate.query.node.node import Order
from tidegate.query.ranking import TopRanked
from tidegate.remote.scheme import shown
from tidegate.schema import columns_text, type_name
from tidegate.source.backfill.address import BackfillAddress, is_backfill

_VERSION = "tidegate plan 2"


@dataclass(frozen=True)
class PortForm:
    """What follows an operator for one that takes its rows, over the columns of the operator.

    Where they are rows of windows, conditions are those of HAVING, and the window stays by itself.
    """

    columns: Sequence[NamedExpr]
    where: Sequence[exp.Expression] = ()
    order: Sequence[Order] = ()
    limit: int | None = None
    windowed: bool = False
    ranked: TopRanked | None = None

    @property
    def mark(self) -> list[str]:
        lines = [f"{self._condition} {meaning(spark_sql(e))}" for e in self.where]
        for key in self.order:
            text = meaning(spark_sql(key.expression))
            lines.append(f"order {text} {key.descending} {key.nulls_lead}")
        if self.ranked is not None:
            lines.append(self.ranked.said(lambda e: meaning(spark_sql(e))))
        lines += [f"output {name!r} {meaning(spark_sql(e))}" for name, e in self.columns]
        return [*lines, f"limit {self.limit}"] if self.windowed else lines

    def words(self, texts: Texts | None = None) -> list[str]:
        """`texts` are the columns of the operator, where the query calls them otherwise."""
        lines = [f"{self._condition} {written(e, texts)}" for e in self.where]
        for key in self.order:
            way = "desc" if key.descending else "asc"
            nulls = "first" if key.nulls_lead else "last"
            lines.append(f"order by {written(key.expression, texts)} {way} nulls {nulls}")
        lines += [] if self.limit is None else [f"limit {self.limit}"]
        if self.ranked is not None:
            lines.append(self.ranked.said(lambda e: written(e, texts)))
        for name, expression in self.columns:
            if self.windowed and name in WINDOW and is_column(expression, [name]):
                continue
            text = written(expression, texts)
            lines.append(f"select {text}" if text == f"`{name}`" else f"select {text} as `{name}`")
        return lines

    @property
    def _condition(self) -> str:
        return "having" if self.windowed else "where"


@dataclass(frozen=True)
class StreamForm:
    """What the gate knows of a stream."""

    stream: StreamDef

    @property
    def mark(self) -> list[str]:
        own = self.stream
        name = f"stream {own.name!r} time {own.time!r}"
        return [f"{name} disorder {own.disorder_us} idle {own.idle_us}", *own.reading.lines()]

    @property
    def words(self) -> str:
        own = self.stream
        idle = "" if own.idle_us is None else f" idle {duration_text(own.idle_us)}"
        read = "".join(f" {line}" for line in own.reading.lines())
        disorder = duration_text(own.disorder_us)
        return f"stream {own.name} time {own.time} disorder {disorder}{idle}{read}"

    @property
    def shown(self) -> list[str]:
        """With its sources, and of files the columns and where their types come from."""
        own = self.stream
        idle = "off" if own.idle_us is None else duration_text(own.idle_us)
        sources = ", ".join(map(shown, own.uris)) or "given as objects"
        disorder = duration_text(own.disorder_us)
        lines = [
            f"{own.name}: time {own.time}, disorder {disorder}, idle {idle}, sources: {sources}"
        ]
        seams = [BackfillAddress.parse(uri, own.name) for uri in own.uris if is_backfill(uri)]
        lines += [f"  backfill: {seam.words}" for seam in seams]
        if own.types_from:
            lines.append(f"  columns, {own.types_from}: {columns_text(own.schema)}")
            options = ", ".join(f"{name} {value!r}" for name, value in own.reading.options)
            lines += [f"  options: {options}"] if options else []
        return lines


@dataclass(frozen=True)
class InputForm:
    """What a subquery takes of one input: which rows, and what is computed of each."""

    prefix: Prefix
    stream: StreamDef | None

    @property
    def mark(self) -> list[str]:
        own, stream = self.prefix, self.stream
        lines = [f"result {own.origin}"] if stream is None else StreamForm(stream).mark
        lines += own.joins
        lines.append(f"where {meaning(own.sql_where) if own.sql_where else None}")
        for (name, text), (_, expr) in zip(own.sql_outputs, own.outputs, strict=True):
            lines.append(f"column {name!r} {expr.type} {meaning(text)}")
        return lines

    @property
    def shown(self) -> list[str]:
        own = self.prefix
        lines = [f"reads: {', '.join(own.columns) or 'no column'} and the time {own.time}"]
        lines += own.joins
        lines += [f"where: {own.sql_where}"] if own.sql_where else []
        lines += [f"sheds: {own.sieve.text}"] if own.sieve is not None else []
        return lines + [f"{name} = {t}" for name, t in own.sql_outputs if t != f"`{name}`"]


@dataclass(frozen=True)
class SubqueryForm:
    """A lowered subquery under the name that a checkpoint has for it.

    `streams` are the definitions of its inputs that are streams, None for rows of others.
    """

    key: str
    streams: tuple[StreamDef | None, ...]
    lowered: Lowered

    @property
    def mark(self) -> Iterator[str]:
        yield f"subquery {self.key}"
        for stream, prefix in zip(self.streams, self.lowered.prefixes, strict=True):
            yield from InputForm(prefix, stream).mark
        yield from self.lowered.lines

    @property
    def subquery(self) -> Subquery:
        """As the plan has it, still without its fingerprint."""
        own = self.lowered
        grouped = own.operator.traits.grouped
        prefixes = tuple(with_codes(prefix, grouped) for prefix in own.prefixes)
        return Subquery(self.key, prefixes, self.streams, own.operator, own.ports)

    def words(self, title: str) -> RecordedSubquery:
        origins = [(p.name, p.origin) for p in self.lowered.prefixes]
        edges = tuple((name, o.port) for name, o in origins if isinstance(o, Edge))
        return RecordedSubquery(self.key, self.lowered.record, edges, title)


@dataclass(frozen=True)
class PlanForm:
    """A whole plan: its subqueries, each after those whose rows it takes, and its outputs."""

    streams: Sequence[StreamDef]
    subqueries: Sequence[SubqueryForm]
    targets: tuple[Target, ...]

    @property
    def fingerprint(self) -> str:
        """sha256 over a canonical text: the same in every process, for SQL and Python alike.

        It changes with anything that changes the answer or the state. URIs, instances and the
        engine that evaluates the prefix are left out.
        """
        lines = [_VERSION, *(line for subquery in self.subqueries for line in subquery.mark)]
        lines += [f"target {t.name!r} {t.edge}" for t in self.targets]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def recorded(self, plan: Plan) -> RecordedQuery:
        """What a checkpoint keeps of it; `plan` has the names of the subqueries."""
        words = [StreamForm(stream).words for stream in self.streams]
        named = zip(self.subqueries, plan.subqueries, strict=True)
        return RecordedQuery(
            fingerprint=plan.fingerprint,
            streams=(*words, *([READY] if plan.hold else [])),
            outputs=tuple(f"output {t.name}" if t.name else "output" for t in self.targets),
            subqueries=tuple(form.words(made.name) for form, made in named),
            reads=_read_types(self.streams, (p for s in plan.subqueries for p in s.prefixes)),
        )


def _read_types(streams: Sequence[StreamDef], prefixes: Iterable[Prefix]) -> dict[str, str]:
    """The types of the columns that prefixes read: what a condition means depends on them."""
    read = [(streams[p.origin], p.columns) for p in prefixes if isinstance(p.origin, int)]
    return {
        f"{stream.name}.{name}": type_name(stream.schema.field(name).type)
        for stream, columns in read
        for name in columns
    }
