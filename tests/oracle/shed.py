"""Shedding tuple by tuple and window by window: the twin of the sieve and of what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from tests.oracle.aggregate import windows
from tests.oracle.function import About, Row, one_zero, result, sort_key
from tests.oracle.query import Answer, Cells, PlainStream, Windowed, in_total_order, ordered
from tests.oracle.sample import priority
from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.pane.pane import AggregateSpec

CONCEPT, TOTAL, UNIFORM = "CONCEPT", "CONCEPT TOTAL", "UNIFORM"

FEWEST = 2
"""Of each group so many tuples are kept at least, by concept."""


@dataclass(frozen=True)
class Shedding:
    """An aggregate that sheds this share of its tuples, or others from some event times on."""

    windowed: Windowed
    share: str
    by: str
    changes: tuple[tuple[int, str], ...] = ()

    @property
    def rate(self) -> Fraction:
        return 1 - Fraction(self.share)

    def rate_at(self, ts: int) -> Fraction:
        return 1 - Fraction([self.share, *(s for us, s in self.changes if us <= ts)][-1])

    def excess(self, row: Row) -> float:
        """How many tuples more than one a tuple stands for, at the rate of the query."""
        return float(self.rate) / float(self.rate_at(row["ts"])) - 1

    def level(self, word: int, ts: int) -> int:
        """A priority as it would be if tuples of all times were kept at the rate of the query."""
        limit, to = (int(float(r) * 2**64) for r in (self.rate_at(ts), self.rate))
        if limit == to:
            return word
        slack = min(2, 2**64 / limit, 2**64 / to)
        moved = float(word) * (to / limit)
        if float(word) >= slack * limit:
            steep = (2**64 - slack * to) / max(2**64 - slack * limit, 1.0)
            moved = slack * to + (float(word) - slack * limit) * steep
        found = int(min(max(moved, 0.0), 2.0**64 - 2048))
        return min(found, to - 1) if word < limit else max(found, to)


def interpret_shed(query: Shedding, streams: Sequence[PlainStream]) -> Answer:
    """What the query gives over these streams; `kept` is the last cell of a row."""
    answer, windowed, seed = Answer(), query.windowed, seed_of("shed")
    rows = []
    for place, row in in_total_order(streams, answer):
        src = (place.stream << 32) + place.source
        word = query.level(priority(seed, src, place.seq), row["ts"])
        if query.by == UNIFORM:
            answer.shed += word >= float(query.rate) * 2**64
        if windowed.where(row):
            rows.append({**row, "src": src, "seq": place.seq, "priority": word})
    names = [name for name, _ in windowed.spec.keys]
    names += [f.name for f in windowed.spec.functions] + ["kept"]
    if query.by == UNIFORM:
        found = _uniform(query, rows)
    else:
        found, answer.shed = _by_concept(query, rows)
    answer.rows = ordered(windowed, found, names)
    return answer


def _uniform(query: Shedding, rows: Sequence[Row]) -> list[Cells]:
    limit = float(query.rate) * 2**64
    kept = [row for row in rows if row["priority"] < limit]
    spec, factor = query.windowed.spec, float(1 / query.rate)
    first, found = 2 + len(spec.keys), []
    groups = _members(query, kept)
    for cells in windows(spec, kept):
        key = tuple(sort_key(value) for value in cells[2:first])
        members = groups[cells[0] // spec.window.slide_us, key]
        values = [
            _corrected(query, f, value, members)
            for f, value in zip(spec.functions, cells[first:], strict=True)
        ]
        counted = len(members) + sum(query.excess(row) for row in members)
        share = float(query.rate) * (len(members) / counted)
        found.append((*cells[:first], *_scaled(spec, values, factor), share))
    return found


def _members(query: Shedding, rows: Sequence[Row]) -> dict[tuple[int, Any], list[Row]]:
    """The rows of each window, by its number, and group."""
    spec = query.windowed.spec
    groups: dict[tuple[int, Any], list[Row]] = {}
    for row in rows:
        k = row["ts"] // spec.window.slide_us
        while row["ts"] < k * spec.window.slide_us + spec.window.range_us:
            key = tuple(sort_key(row[name]) for name, _ in spec.keys)
            groups.setdefault((k, key), []).append(row)
            k -= 1
    return groups


def _represented(words: Sequence[tuple[int, Row]], rate: float) -> list[Row]:
    """The rows whose priority is below the rate; at least the lowest FEWEST, with all that tie."""
    in_order = sorted(words, key=lambda one: one[0])
    kept = [one for one in in_order if one[0] < rate * 2**64]
    if len(kept) < FEWEST:
        kept = [one for one in in_order if one[0] <= in_order[:FEWEST][-1][0]]
    return [row for _, row in kept]


def _by_concept(query: Shedding, rows: Sequence[Row]) -> tuple[list[Cells], int]:
    """The rows, and how many tuples windows that do not overlap are not answered from."""
    spec = query.windowed.spec
    groups = _members(query, rows)
    output, shed, apart = [], 0, -(-spec.window.range_us // spec.window.slide_us)
    quotas = _quotas(query, groups) if query.by == TOTAL else {}
    for (k, key), members in sorted(groups.items(), key=lambda item: item[0]):
        words = [(row["priority"], row) for row in members]
        kept = _represented(words, float(query.rate))
        if query.by == TOTAL:
            kept = [row for _, row in sorted(words, key=lambda one: one[0])][: quotas[k, key]]
        shed += len(members) - len(kept) if k % apart == 0 else 0
        if not kept:
            continue
        kept.sort(key=lambda r: (r["ts"], r["src"], r["seq"]))
        results = [result(f, kept, {}) for f in spec.functions]
        more = sum(query.excess(row) for row in kept)
        whole = len(kept) == len(members)
        if not whole:
            results = [
                _corrected(query, f, value, kept)
                for f, value in zip(spec.functions, results, strict=True)
            ]
        start, keys = (
            k * spec.window.slide_us,
            [one_zero(members[0][name]) for name, _ in spec.keys],
        )
        factor = len(members) / (len(kept) + more)
        cells = results if whole else _scaled(spec, results, factor)
        output.append(
            (start, start + spec.window.range_us, *keys, *cells, len(kept) / len(members))
        )
    return output, shed


def _quotas(query: Shedding, groups: Mapping[Any, Sequence[Row]]) -> dict[Any, int]:
    """By window and group how many tuples are kept, one after the other."""
    given: dict[Any, int] = {}
    limit, fewest = float(query.rate) * 2**65, 1 if query.windowed.spec.keys else 16
    for window in {k for k, _ in groups}:
        due, most, lowest = {}, {}, {}
        for place in (place for place in groups if place[0] == window):
            rates = [query.rate_at(row["ts"]) for row in groups[place]]
            words = sorted(row["priority"] for row in groups[place])
            due[place], lowest[place] = sum(rates), words[0]
            most[place] = max(sum(w < limit for w in words), min(fewest, len(words)))
            given[place] = min(int(due[place]), most[place])
        left = int(sum(due.values()) + Fraction(1, 2)) - sum(given[place] for place in due)
        while left > 0 and (open_ := [place for place in due if given[place] < most[place]]):
            open_.sort(key=lambda p: (given[p] > 0, given[p] - due[p], lowest[p]))
            for place in open_[:left]:
                given[place] += 1
                left -= 1
    return given


def _corrected(query: Shedding, f: Any, value: Any, kept: Sequence[Row]) -> Any:
    """A count, a sum or a mean where tuples stand for different numbers of others."""
    if not any(query.excess(row) for row in kept) or f.kind not in ("sum", "count", "mean"):
        return value
    taken = f.arguments[0] if f.arguments else "ts"
    there = [(query.excess(row), row[taken]) for row in kept if row[taken] is not None]
    if f.kind == "count":
        return value + sum(excess for excess, _ in there)
    if value is None:
        return None
    total = sum((1 + excess) * float(x) for excess, x in there)
    return total if f.kind == "sum" else total / sum(1 + excess for excess, _ in there)


def _scaled(spec: AggregateSpec, values: Sequence[Any], factor: float) -> list[Any]:
    """What grows with the number of tuples, times the factor, in its own type."""
    pairs = zip(spec.functions, values, strict=True)
    grows = ("sum", "count", "count_if")
    return [_times(v, factor) if f.kind in grows and v is not None else v for f, v in pairs]


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, About):
        return About(value * factor, value.within * factor)
    if isinstance(value, float):
        return value * factor
    product = float(value) * factor
    if isinstance(value, int):
        return int(Decimal(product).to_integral_value(ROUND_HALF_UP))
    return Decimal(repr(product)).quantize(value, ROUND_HALF_UP)
