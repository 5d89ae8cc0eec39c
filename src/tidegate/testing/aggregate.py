"""Checks a user's aggregate: its results must not depend on how rows are divided and merged.

The engine folds rows where it reads them, and merges states where their group lives. Batches,
sources and partitioners decide how many states there are and in which order they are merged. So
the results must be the same to the bit for all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import from_bytes, to_bytes
from tidegate.operate.aggregate.user import Aggregator, UserFamily
from tidegate.operate.kernels.family import Family, States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import flat

_MOST_ROWS = 12
"""The most rows in one try: mistakes show with few rows."""


_PLACES = ((0, 0), (0, 1), (1, 2))
"""The number of the tested group, and how many other groups there are."""


def check_aggregate(
    aggregate: Aggregator,
    *columns: pa.Array | Sequence[Any],
    in_order: bool = False,
    tries: int = 300,
    seed: int = 0,
) -> None:
    """Raise AssertionError if results depend on how rows are divided, ordered and merged.

    `columns` are values for the arguments, one entry per row. Include awkward ones: NULL, 0.1 and
    1e16, NaN, repetitions. Each of `tries` picks rows at random, by the seed. It folds them at
    once, and in parts beside other groups, whose states are written, read again and merged in a
    tree. The message has the fewest rows for which a search found the mistake.

    With `in_order` parts are runs of rows and are merged in their order, as windows of tuples do.
    """
    rows = pa.table([_column(column) for column in columns], [str(i) for i in range(len(columns))])
    if rows.num_rows == 0:
        raise ValueError("check_aggregate: values for at least one row must be given; got none.")
    what = f"aggregate {type(aggregate).__qualname__}"
    check = Check(UserFamily(aggregate), rows, in_order, what)
    run_check(check, tries, seed)
    if aggregate.mean_like and aggregate.skips_null:
        _check_null(check)


def _check_null(check: Check) -> None:
    """Check that tuples whose arguments are all NULL change nothing."""
    columns = check.rows.columns
    given = range(check.rows.num_rows)
    there = tuple(i for i in given if any(column[i].is_valid for column in columns))
    results = [check.result(rows) for rows in (there, tuple(given))]
    if len(there) < len(given) and results[0] != results[1]:
        raise AssertionError(
            f"{check.what}: tuples whose arguments are all NULL must change nothing; got "
            f"{results[1]} with and {results[0]} without them. Leave them out in fold, or write "
            "skips_null = False in the class."
        )


def run_check(check: Check, tries: int, seed: int) -> None:
    """Try so many ways; raise AssertionError for the first mistake, with the fewest rows."""
    rows = check.rows
    chance = np.random.default_rng(seed)
    for number in range(tries):
        few = min(1 + number % _MOST_ROWS, rows.num_rows)
        chosen = sorted(chance.choice(rows.num_rows, few, replace=False).tolist())
        wrong = check.wrong(chosen, chance)
        if wrong is not None:
            raise AssertionError(check.told(check.smallest(wrong, tries, chance)))


def _column(column: pa.Array | Sequence[Any]) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column)


@dataclass(frozen=True)
class _Part:
    """A node of a tree: rows that are folded, or parts whose states are merged."""

    rows: tuple[int, ...]
    parts: tuple[_Part, ...] = ()

    def text(self, shown: Callable[[int], str]) -> str:
        if self.parts:
            return f"merge({', '.join(part.text(shown) for part in self.parts)})"
        return f"fold({', '.join(map(shown, self.rows))})"


@dataclass(frozen=True)
class Check:
    """Rows, and the kernels whose results must not depend on how these are divided."""

    family: Family
    rows: pa.Table
    in_order: bool
    what: str
    """The subject of messages."""
    shown: int | None = None
    """How many columns of a row messages show; None for all."""
    remedy: str = ""

    def result(self, rows: Sequence[int]) -> str:
        """The result of folding these rows at once, as text."""
        return self._result(_Part(tuple(rows)), None)

    def wrong(self, chosen: Sequence[int], chance: np.random.Generator) -> _Part | None:
        """Try one random way of merging these rows; the way, if its result differs."""
        part = self._divided(list(chosen), chance)
        expected = self._result(_Part(tuple(chosen)), None)
        return part if self._result(part, chance) != expected else None

    def smallest(self, wrong: _Part, tries: int, chance: np.random.Generator) -> _Part:
        """Leave out row after row while a mistake still shows."""
        rows = sorted(wrong.rows)
        place = 0
        while place < len(rows):
            fewer = rows[:place] + rows[place + 1 :]
            found = (self.wrong(fewer, chance) for _ in range(tries if fewer else 0))
            again = next((part for part in found if part is not None), None)
            if again is None:
                place += 1
            else:
                rows, wrong = fewer, again
        return wrong

    def told(self, wrong: _Part) -> str:
        at_once = _Part(tuple(sorted(wrong.rows)))
        results = [self._result(part, None) for part in (at_once, wrong)]
        if results[0] == results[1]:
            requirement = "the result must not depend on the rows of other groups"
            got = f"a difference in {wrong.text(self._shown)} beside others"
            remedy = "Use `groups` for every row of a column."
        else:
            requirement = "the result must not depend on how rows are divided and merged"
            ways = zip(results, (at_once, wrong), strict=True)
            got = " and ".join(f"{result} from {way.text(self._shown)}" for result, way in ways)
            remedy = (
                "Keep what is the same in any order: integers, sets, extremes; no sums of floats."
                f"{self.remedy}"
            )
        return f"{self.what}: {requirement}; got {got}. {remedy}"

    def _shown(self, row: int) -> str:
        cells = [repr(column[row].as_py()) for column in self.rows.columns[: self.shown]]
        return cells[0] if len(cells) == 1 else f"({', '.join(cells)})"

    def _divided(self, rows: list[int], chance: np.random.Generator) -> _Part:
        """A random tree over rows: leaves are folded, inner nodes merged, even single parts."""
        if len(rows) == 1 or chance.random() < 0.3:
            leaf = _Part(tuple(rows))
            return _Part(leaf.rows, (leaf,)) if chance.random() < 0.2 else leaf
        if not self.in_order:
            rows = chance.permutation(rows).tolist()
        most = min(3, len(rows) - 1)
        places = chance.choice(len(rows) - 1, chance.integers(1, most + 1), replace=False)
        cuts = sorted((places + 1).tolist())
        edges = zip([0, *cuts], [*cuts, len(rows)], strict=True)
        parts = tuple(self._divided(rows[a:b], chance) for a, b in edges)
        return _Part(tuple(row for part in parts for row in part.rows), parts)

    def _result(self, part: _Part, chance: np.random.Generator | None) -> str:
        """The result as a text that differs for different values; all NaN are equal."""
        return repr(self.family.finish(self._state(part, chance))[0].as_py())

    def _state(self, part: _Part, chance: np.random.Generator | None) -> States:
        """The state of one group; with `chance`, made beside a random number of other groups."""
        mine, others = _PLACES[chance.integers(len(_PLACES)) if chance else 0]
        codes = [mine] * (len(part.parts) or len(part.rows))
        if part.parts:
            states = [self._state(inner, chance) for inner in part.parts]
            rows = [pa.concat_arrays(column) for column in zip(*states, strict=True)]
        else:
            rows = [flat(column) for column in self.rows.take(list(part.rows)).columns]
        beside = [group for group in range(others + 1) if group != mine]
        taken = [0] * len(beside) + list(range(len(codes)))
        groups = Groups(np.array([*beside, *codes], np.int64), others + 1)
        given = [column.take(pa.array(taken)) for column in rows]
        made = self.family.merge if part.parts else self.family.fold
        return _stored([column.slice(mine, 1) for column in made(groups, given)])


def _stored(states: States) -> States:
    """The states after they were written and read again, as by a checkpoint."""
    back = from_bytes(to_bytes(pa.table(states, [str(i) for i in range(len(states))])))
    return [flat(column) for column in back.columns]
