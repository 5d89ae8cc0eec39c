"""Compares two queries on one checkpoint, and decides whether the new one can use the state.

The state itself is never converted. Its meaning must be the same, and it must contain what the new
query needs. The work after the state may change, unless another subquery has made state of those
rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from tidegate.plan.compatibility.query_record import RecordedQuery, RecordedSubquery
from tidegate.plan.physical import Plan

_QUOTED = re.compile("`([A-Za-z_][A-Za-z_0-9]*)`")
_SHOWN = 12
"""The most changed lines that are shown of each part of a query."""


@dataclass(frozen=True)
class QueryChange:
    """The difference of two queries: the changed lines by part, and why it is refused, if it is.

    Without a `reason` the new query can use the old state. `fresh` are subqueries, and `added`
    functions of an aggregate, for which there is no state. They start empty, and only if the user
    asks for it (`--start-empty`).
    """

    parts: tuple[tuple[str, tuple[str, ...]], ...]
    reason: str | None = None
    fresh: tuple[str, ...] = ()
    added: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The functions of each aggregate, by its title."""

    @property
    def empty(self) -> tuple[str, ...]:
        """Everything that starts empty."""
        return (*self.fresh, *(text for _, texts in self.added for text in texts))

    @property
    def lacks(self) -> list[str]:
        """What the state of each aggregate lacks, as sentences."""
        return [f"the state of {title} does not have {', '.join(ts)}" for title, ts in self.added]

    @property
    def lines(self) -> list[str]:
        """The changes, indented for the end of a message."""
        return [
            line
            for name, changed in self.parts
            for line in (f"  {name}", *(f"    {text}" for text in changed))
        ]

    @property
    def text(self) -> str:
        """The changes on one line."""
        changed = [f"{name}: {', '.join(lines)}" for name, lines in self.parts]
        return "; ".join([*changed, *(f"{name} starts empty" for name in self.empty)])


def fitted(plan: Plan, old: RecordedQuery) -> Plan:
    """A plan of the same query that can read the state of a recorded one.

    If there is none, returns a plan for which `compared` finds a reason to refuse.
    """
    assert plan.recorded is not None
    assert plan.again is not None
    if _is_named_alike(plan.recorded, old):
        return replace(plan, recorded=plan.recorded.after(old))
    mark, other = plan.fingerprint, plan.again(old)
    assert other.recorded is not None
    if other.fingerprint == old.fingerprint:  # the plan left open what the state decides
        return other
    return replace(
        other,
        fingerprint=mark,
        subqueries=tuple(replace(s, fingerprint=mark) for s in other.subqueries),
        recorded=replace(other.recorded, fingerprint=mark),
    )


def compared(old: RecordedQuery, new: RecordedQuery) -> QueryChange:
    """The difference of two queries, with the first reason why the state cannot be used, if any."""
    reason = next(_reasons(old, new), None)
    kept = {s.name for s in old.stateful}
    fresh = tuple(s.title for s in new.stateful if s.name not in kept)
    added = ((s.title, tuple(_added(s, old))) for s in new.stateful)
    parts = tuple(_parts(old, new))
    return QueryChange(parts, reason, fresh, tuple((t, texts) for t, texts in added if texts))


def states(old: RecordedQuery, new: RecordedQuery) -> str:
    """A sentence: which subqueries have state in the checkpoint, and which the query would keep."""
    had, have = (", ".join(s.title for s in q.stateful) or "nothing" for q in (old, new))
    return f"the checkpoint has state of {had}, the query would keep state of {have}"


def shown(line: str) -> str:
    """A recorded line for people, without needless quotes around names."""
    return _QUOTED.sub(r"\1", line)


def _is_named_alike(new: RecordedQuery, old: RecordedQuery) -> bool:
    for subquery in new.stateful:
        known = old.find(subquery.name)
        if known is None or known.record.state != subquery.record.state:
            return False
        columns = known.record.columns
        if any(columns.get(n) != text for n, text in subquery.record.columns.items()):
            return False
    return True


def _reasons(old: RecordedQuery, new: RecordedQuery) -> Iterator[str]:
    kept, needed = ({s.name for s in query.stateful} for query in (old, new))
    if kept - needed or (needed - kept and old.streams != new.streams):
        yield states(old, new)
    if old.streams != new.streams:
        yield "its streams have changed, and the checkpoint has what was read of them"
    gone = [name for name in old.outputs if name not in new.outputs]
    if gone:
        yield f"it does not have {', '.join(gone)} any more"
    if new.stateful and _reads(old, new) != _reads(new, old):
        yield "state was made of columns that have other types now"
    for subquery in new.stateful:
        yield from _state_reasons(subquery, old, new)


def _reads(query: RecordedQuery, other: RecordedQuery) -> list[str]:
    """The columns that both queries read, with their types in `query`."""
    return [f"column {n} {type_}" for n, type_ in sorted(query.reads.items()) if n in other.reads]


def _state_reasons(
    subquery: RecordedSubquery, old: RecordedQuery, new: RecordedQuery
) -> Iterator[str]:
    known = old.find(subquery.name)
    if known is None:
        return
    if known.record.state != subquery.record.state:
        yield f"the state of {subquery.title} was made with what has changed"
    for name, text in _lacking(subquery, old):
        if name not in subquery.record.adds:
            yield f"the state of {subquery.title} does not have {shown(text)}"
    if old.fingerprint != new.fingerprint:
        for name, port in _rows_below(subquery, old, new):
            if _after(old.find(name), port) != _after(new.find(name), port):
                giver = (new.find(name) or subquery).title
                yield f"the state of {subquery.title} was made of rows of {giver}, which changed"


def _lacking(subquery: RecordedSubquery, old: RecordedQuery) -> list[tuple[str, str]]:
    """The columns that a subquery needs and its state in the checkpoint lacks."""
    known = old.find(subquery.name)
    if known is None:
        return []
    there, wanted = known.record.columns, subquery.record.columns
    return [(name, text) for name, text in wanted.items() if there.get(name) != text]


def _added(subquery: RecordedSubquery, old: RecordedQuery) -> list[str]:
    """The lacking columns that may start empty, in words."""
    lacking = _lacking(subquery, old)
    return [shown(text) for name, text in lacking if name in subquery.record.adds]


def _rows_below(
    subquery: RecordedSubquery, old: RecordedQuery, new: RecordedQuery
) -> Iterator[tuple[str, int]]:
    """All ports below a subquery, in the old query or the new one, as pairs of name and port."""
    waiting = [subquery.name]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for found in (old.find(name), new.find(name)):
            taken = () if found is None else found.inputs
            yield from taken
            waiting += [giver for giver, _ in taken]


def _after(subquery: RecordedSubquery | None, port: int) -> object:
    if subquery is None or port >= len(subquery.record.after):
        return None
    return subquery.inputs, subquery.record.after[port]


Part = tuple[str, tuple[str, ...]]


def _parts(old: RecordedQuery, new: RecordedQuery) -> list[Part]:
    """The changed lines by part of the query; if none are visible, those of the kept state."""
    names = dict.fromkeys(s.name for q in (old, new) for s in q.subqueries)
    both = [(_title(n, new, old), old.find(n), new.find(n)) for n in names]
    seen = _differences(
        ("streams", old.streams, new.streams),
        ("columns", _reads(old, new), _reads(new, old)),
        *((title, a.lines if a else (), b.lines if b else ()) for title, a, b in both),
        ("outputs", old.outputs, new.outputs),
    )
    kept = ((title, a.kept if a else (), b.kept if b else ()) for title, a, b in both)
    return seen or _differences(*kept)


def _differences(*pairs: tuple[str, Sequence[str], Sequence[str]]) -> list[Part]:
    changes = ((name, tuple(_difference(before, after))) for name, before, after in pairs)
    return [(name, changed) for name, changed in changes if changed]


def _title(name: str, *queries: RecordedQuery) -> str:
    found = (query.find(name) for query in queries)
    return next((s.title for s in found if s is not None), name)


def _difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    changes = list(_changes(before, after))
    yield from changes[:_SHOWN]
    if len(changes) > _SHOWN:
        yield f"and {len(changes) - _SHOWN} lines more"


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterable[str]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield from (f"- {shown(line)}" for line in before[a:b])
            yield from (f"+ {shown(line)}" for line in after[c:d])
