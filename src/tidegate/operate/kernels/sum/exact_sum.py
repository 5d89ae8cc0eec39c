"""Exact sums of doubles per group, the same for any order and division of the rows.

A **kept sum** is a value of a column of type `KEPT_SUM`. It is a function of the numbers added and
of nothing else: not of their order, or of how they were divided and merged. It is 32-bit words,
least first. The digits, in two's complement, are the fewest that hold the sum: the first is not
zero, the last has the sign, digit i counts 2**(32 * (base + i)). Before them stands base * 8 +
flags. A sum of zero has no words. Prices and their squares take three and five digits, the whole
range of a double 67 and that of products 134.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints

Words = npt.NDArray[np.int32]

KEPT_SUM = pa.large_binary()
"""The type of a column of kept sums."""

_LIMBS = 2**23
"""The most limbs that are filled at once, 64 MB; more groups are done in turns."""


def sum_values(groups: Groups, values: Floats) -> pa.Array:
    """Kept sums of numbers per group; NaN and infinities become flags of the sum."""
    bits = _bits(values)
    return _in_turns("values", groups, (bits,), _loop("span_of_values")(bits), reach=3)


def sum_products(groups: Groups, values: Floats, others: Floats) -> pa.Array:
    """Kept sums of products of two columns per group; pairs with NaN or infinity are left out.

    `sum_values` of the columns has their flags, so a caller sees them.
    """
    bits = _bits(values), _bits(others)
    return _in_turns("products", groups, bits, _loop("span_of_products")(*bits), reach=5)


def add_sums(groups: Groups, sums: pa.Array) -> pa.Array:
    """Kept sums of kept sums per group: the merge of partials."""
    offsets, words = _arrays(sums)
    places = offsets[:-1], offsets[1:]
    span = _loop("span_of_sums")(*places, words)
    return _in_turns("sums", groups, places, span, reach=1, shared=(words,))


def slide_sums(sums: pa.Array, first: Ints, last: Ints) -> pa.Array:
    """Kept sums of the kept sums in [first, last), one per window; neither bound ever falls.

    Costs O(sums + windows): a sum enters once and leaves once.
    """
    offsets, words = _arrays(sums)
    places = offsets[:-1], offsets[1:]
    low, width = _limbs(_loop("span_of_sums")(*places, words), reach=1)
    turns = []
    step = max(_LIMBS // max(width, 1), 1)
    for start in range(0, len(first), step):
        since, until = (_fixed(bound[start : start + step]) for bound in (first, last))
        given = (*places, words, since, until)
        turns.append(_made(_loop("slid"), given, len(since), low, width))
    return pa.concat_arrays(turns) if turns else pa.array([], KEPT_SUM)


def round_sums(sums: pa.Array) -> Floats:
    """The doubles nearest to kept sums, half to even, infinite beyond the largest.

    A sum of zero is 0.0; that of both infinities, or with a NaN, is NaN.
    """
    from tidegate.operate.kernels.sum.exact_round_loop import rounded

    doubles: Floats = rounded()(*_arrays(sums))
    return doubles


def covariances(counts: Ints, less: int, x: pa.Array, y: pa.Array, xy: pa.Array) -> Floats:
    """The doubles nearest to (n * sum(xy) - sum(x) * sum(y)) / (n * (n - less)), n below 2**32.

    0.0 where n <= less, NaN where a number was not finite. With y = x it is a variance.
    """
    columns = [part for sums in (x, y, xy) for part in _arrays(sums)]
    bits: Ints = _moment_loop("covariances")(counts, less, *columns)
    return bits.view(np.float64)


def correlations(counts: Ints, *sums: pa.Array) -> Floats:
    """Pearson's correlations from the sums of x, y, xy, xx and yy; infinite where there is none."""
    columns = [part for column in sums for part in _arrays(column)]
    found: Floats = _moment_loop("correlations")(counts, *columns)
    return found


def _in_turns(
    name: str,
    groups: Groups,
    columns: Sequence[Ints],
    span: tuple[int, int],
    reach: int,
    shared: Sequence[Words] = (),
) -> pa.Array:
    """Run a loop over all groups, or in turns over as many as there may be limbs for."""
    low, width = _limbs(span, reach)
    codes, run = _fixed(groups.codes), _loop(name)
    if groups.n * width <= _LIMBS:
        return _made(run, (codes, *columns, *shared), groups.n, low, width)
    turns = []
    step = max(_LIMBS // width, 1)
    for first in range(0, groups.n, step):
        n = min(step, groups.n - first)
        begin = groups.starts[first]
        rows = groups.order[begin : begin + groups.counts[first : first + n].sum()]
        chosen = [column[rows] for column in columns]
        turns.append(_made(run, (codes[rows] - first, *chosen, *shared), n, low, width))
    return pa.concat_arrays(turns)


def _limbs(span: tuple[int, int], reach: int) -> tuple[int, int]:
    """The place of the lowest limb, and the number of limbs of a group.

    `span` has the least and greatest exponents of a call. `reach` is how many digits a row may
    change from its first on; carries may take one more.
    """
    low, high = (exponent >> 5 for exponent in span)
    return low, max(high - low + reach + 1, 0)


def _fixed(numbers: Ints) -> Ints:
    return np.require(numbers, np.int64, ("C", "A"))


def _made(
    run: Callable[..., int], given: Sequence[npt.NDArray[Any]], n: int, low: int, width: int
) -> pa.Array:
    """Run a loop that makes n kept sums, in memory of `_room`; returns them as a column."""
    limbs = _room(n * width, np.int64).reshape(n, width)
    limbs.fill(0)
    offsets, words = _room(n + 1, np.int64), _room(n * (width + 2), np.int32)
    used = run(*given, low, limbs, np.zeros(n, np.uint8), offsets, words)
    # `words` had room for the worst case; the column must not hold on to that.
    kept = _room(used, np.int32)
    kept[:] = words[:used]
    return pa.Array.from_buffers(KEPT_SUM, n, [None, pa.py_buffer(offsets), pa.py_buffer(kept)])


def _room(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Uninitialised memory from Arrow's allocator.

    It is used again, while large pieces of numpy's come from the system each time, page by page.
    """
    return np.frombuffer(pa.allocate_buffer(size * np.dtype(dtype).itemsize), dtype)


def _arrays(sums: pa.Array) -> tuple[Ints, Words]:
    """A column of kept sums as its n + 1 offsets, in bytes, and the words of all sums."""
    _, offsets, data = sums.buffers()
    if len(sums) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.int32)
    places = np.frombuffer(offsets, np.int64, len(sums) + 1, 8 * sums.offset)
    words = np.frombuffer(data or b"", np.int32, int(places[-1]) // 4)
    return _fixed(places), np.require(words, np.int32, "A")


def _bits(values: Floats) -> Ints:
    return np.require(values, np.float64, ("C", "A")).view(np.int64)


def _loop(name: str) -> Callable[..., Any]:
    from tidegate.operate.kernels.sum.exact_sum_loop import loop

    return loop(name)


def _moment_loop(name: str) -> Callable[..., Any]:
    from tidegate.operate.kernels.sum.exact_moment_loop import loop

    return loop(name)
