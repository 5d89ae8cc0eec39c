"""Windows WITH BALANCE row by row: which groups are trimmed, and what samples say of them.

Algorithm 10 is that of `tests/oracle/trim.py`. What a sample says of a group is done as for answers
within an error, for each group by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from tests.oracle.aggregate import groups_of
from tests.oracle.bounded import Bounded, Cell, cells_of, exact_cells
from tests.oracle.function import Row
from tests.oracle.sample import priority
from tests.oracle.trim import shed_part
from tidegate.approx.trim import TrimThresholds, sample_size
from tidegate.operate.aggregate.bounded.answering import Answer
from tidegate.operate.aggregate.estimate import DEVIATION, KEPT, QUANTILES, VARIANCE
from tidegate.route.bucket import hash_of
from tidegate.route.survey import LEAST_BINS


@dataclass(frozen=True)
class Balanced(Bounded):
    """A query that trims groups of so many buckets; `numbers` are its arguments that are such."""

    seed: int
    buckets: int
    numbers: frozenset[str]
    thresholds: TrimThresholds

    def most(self, answer: Answer) -> int:
        """All tuples are there, so that no more are taken than it takes."""
        return self.rules.quantile_rows(answer.function)


Group = tuple[Any, Any, tuple[Any, ...], list[Row]]


def balanced(query: Balanced, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """(start, end, keys..., by aggregate value, low, high, exact) of every window, in order."""
    output = []
    for _, window in groupby(groups_of(query.spec, rows), key=lambda g: g[1]):
        groups: list[Group] = list(window)
        chosen = _trimmed_bins(query, groups)
        for start, end, keys, members in groups:
            trimmed = _bin(query, keys) in chosen
            cells = _cells(query, members, trimmed)
            ends = [cell for c in cells for cell in c[:3]]
            output.append((start, end, *keys, *ends, all(c[3] for c in cells)))
    return output


def _bin(query: Balanced, keys: tuple[Any, ...]) -> int:
    columns = [pa.array([k], t) for k, (_, t) in zip(keys, query.spec.keys, strict=True)]
    return int(hash_of(columns)[0]) % (query.buckets * max(LEAST_BINS // query.buckets, 1))


def _trimmed_bins(query: Balanced, groups: list[Group]) -> set[int]:
    bins: dict[int, list[Row]] = {}
    for *_, keys, members in groups:
        bins.setdefault(_bin(query, keys), []).extend(members)
    found = {
        number: (number % query.buckets, len(rows), _needed(query, rows))
        for number, rows in bins.items()
    }
    load = [0] * query.buckets
    for bucket, tuples, _ in found.values():
        load[bucket] += tuples
    cold = query.thresholds.cold_rows or ceil(sum(load) / len(bins))
    saved = sum(n - s for _, n, s in found.values() if n >= cold)
    if saved / sum(load) < query.thresholds.saving:
        return set()
    buckets = {found[number][0] for number in shed_part(load, found, cold)}
    return {number for number, (bucket, n, _) in found.items() if bucket in buckets and n >= cold}


def _needed(query: Balanced, rows: list[Row]) -> int:
    """The SAMPLE_SIZE of a bin: the largest of all aggregates."""
    rules, count = query.rules, len(rows)
    most = 0
    for answer in _held(query):
        if answer.way == QUANTILES:
            most = max(most, min(rules.quantile_rows(answer.function), count))
            continue
        by_mean = answer.way not in (VARIANCE, DEVIATION)
        known = [n for n in answer.function.arguments if by_mean and n in query.numbers]
        spreads = [_spread(query, rows, n) for n in known]
        for n, mean, variance in spreads:
            given = (np.array([v]) for v in (count, n, mean, variance))
            most = max(most, int(sample_size(*given, rules.error, rules.confidence)[0]))
        most = most if spreads else max(most, min(rules.mean_rows, count))
        most = count if most > rules.mean_rows else most
    return most


def _spread(query: Balanced, rows: list[Row], name: str) -> tuple[int, float, float]:
    """Of one in eight tuples: how many values, their mean and their variance."""
    seen = [
        Fraction(row[name])
        for row in rows
        if row[name] is not None and priority(query.seed, row["src"], row["seq"]) < 2**61
    ]
    n, total = len(seen), sum(seen, Fraction())
    if n < 2:
        return n, float(total) / n if n else float("nan"), float("nan")
    squares = sum((v * v for v in seen), Fraction())
    return n, float(total) / n, float((n * squares - total * total) / (n * (n - 1)))


def _held(query: Balanced) -> list[Answer]:
    return [a for a in query.rules.answers if a.way != KEPT]


def _cells(query: Balanced, members: list[Row], trimmed: bool) -> list[Cell]:
    rules = query.rules
    fewest = max(
        rules.quantile_rows(a.function) if a.way == QUANTILES else rules.promise.pilot
        for a in _held(query)
    )
    cold = query.thresholds.cold_rows or 1
    if not trimmed or len(members) <= fewest or len(members) < cold:
        return [exact_cells(query, a, [members])[0] for a in rules.answers]
    # All tuples are there, for groups whose sample will not do.
    answers = [replace(a, state=a.state or "all of them") for a in rules.answers]
    return [cells_of(query, a, [members])[0] for a in answers]
