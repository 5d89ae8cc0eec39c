"""Shedding tuple by tuple and window by window: the twin of the sieve and of what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from tests.oracle.aggregate import windows
from tests.oracle.function import About, Row, one_zero, result, sort_key
from tests.oracle.query import Answer, Cells, PlainStream, Windowed, in_total_order, ordered
from tests.oracle.sample import priority
from tidegate.approx.priority import seed_of
from tidegate.operate.aggregate.pane import AggregateSpec

FEWEST = 2
"""Of each group so many tuples are kept at least, by concept."""


@dataclass(frozen=True)
class Shedding:
    """An aggregate that sheds this share of its tuples."""

    windowed: Windowed
    share: str
    by_concept: bool

    @property
    def rate(self) -> Fraction:
        return 1 - Fraction(self.share)


def interpret_shed(query: Shedding, streams: Sequence[PlainStream]) -> Answer:
    """What the query gives over these streams; `kept` is the last cell of a row."""
    answer, windowed, seed = Answer(), query.windowed, seed_of("shed")
    rows = []
    for place, row in in_total_order(streams, answer):
        src = (place.stream << 32) + place.source
        word = priority(seed, src, place.seq)
        if not query.by_concept:
            answer.shed += word >= float(query.rate) * 2**64
        if windowed.where(row):
            rows.append({**row, "src": src, "seq": place.seq, "priority": word})
    names = [name for name, _ in windowed.spec.keys]
    names += [f.name for f in windowed.spec.functions] + ["kept"]
    if query.by_concept:
        found, answer.shed = _by_concept(query, rows)
    else:
        found = _uniform(query, rows)
    answer.rows = ordered(windowed, found, names)
    return answer


def _uniform(query: Shedding, rows: Sequence[Row]) -> list[Cells]:
    limit = float(query.rate) * 2**64
    kept = [row for row in rows if row["priority"] < limit]
    spec, factor = query.windowed.spec, float(1 / query.rate)
    first = 2 + len(spec.keys)
    return [
        (*cells[:first], *_scaled(spec, cells[first:], factor), float(query.rate))
        for cells in windows(spec, kept)
    ]


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
    groups: dict[tuple[int, tuple[Any, ...]], list[Row]] = {}
    for row in rows:
        k = row["ts"] // spec.slide_us
        while row["ts"] < k * spec.slide_us + spec.range_us:
            key = tuple(sort_key(row[name]) for name, _ in spec.keys)
            groups.setdefault((k, key), []).append(row)
            k -= 1
    output, shed, apart = [], 0, -(-spec.range_us // spec.slide_us)
    for (k, _), members in sorted(groups.items(), key=lambda item: item[0]):
        words = [(row["priority"], row) for row in members]
        kept = _represented(words, float(query.rate))
        shed += len(members) - len(kept) if k % apart == 0 else 0
        kept.sort(key=lambda r: (r["ts"], r["src"], r["seq"]))
        results = [result(f, kept, {}) for f in spec.functions]
        start, keys = k * spec.slide_us, [one_zero(members[0][name]) for name, _ in spec.keys]
        cells = _scaled(spec, results, len(members) / len(kept))
        output.append((start, start + spec.range_us, *keys, *cells, len(kept) / len(members)))
    return output, shed


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
