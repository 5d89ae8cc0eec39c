"""Users' own aggregates from samples, as good as parts of the sample agree with each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.decision import decided
from tidegate.approx.replicate import PARTS, parts_of, replicated
from tidegate.operate.aggregate.bounded.answering import Answer
from tidegate.operate.aggregate.bounded.cells import Cells, estimated
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.functions.unfolded import unfolded_rows
from tidegate.operate.kernels.family import Family
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints, Mask

PART_ROWS = 2
"""The fewest tuples of a part, so that none is empty, and more than one tuple says something."""


def own(found: SampledWindows, answer: Answer) -> Cells:
    """The aggregate of the sample in windows that it answers, else that of all tuples.

    These were kept as they came, and are folded now: only of windows where it is needed.
    """
    sizes = own_sizes(found)
    taken = found.lowest(sizes)
    codes, ranks = found.sample.groups.codes[taken], found.sample.ranks[taken]
    columns = [column.filter(pa.array(taken)) for column in found.arguments(answer)]
    family = answer.function.family
    result = _results(family, codes, columns, sizes > 0)
    whole = sizes >= found.tuples
    alphas = found.promise.alphas(found.windows.groups(~whole))
    interval, relied_on = replicated(
        _numbers(result),
        _of_parts(family, codes, ranks, columns, sizes),
        rows=sizes,
        tuples=found.tuples,
        alpha=alphas[found.windows.of_group],
    )
    error = np.where(whole, 0.0, np.where(relied_on, interval.error, np.inf))
    decision = decided(interval, error, found.promise, found.windows)
    unanswered = ~decision.by_sample & ~whole
    exact = _exactly(found, answer, result, unanswered)
    return estimated(decision.by_sample & ~whole, interval, error, exact)


def own_sizes(found: SampledWindows) -> Ints:
    """How much of the sample of each row is looked at: its share of the budget, or all of it."""
    most = np.minimum(found.sample.sizes, found.rules.mean_rows)
    return most if found.shares is None else np.minimum(found.shares, most)


def _results(family: Family, codes: Ints, columns: list[pa.Array], there: Mask) -> pa.Array:
    """The aggregate of tuples, row by row; NULL for rows without any, which it is not asked for."""
    number = np.cumsum(there) - 1
    results = family.finish(family.fold(Groups(number[codes], int(there.sum())), columns))
    return pc.replace_with_mask(pa.nulls(len(there), results.type), pa.array(there), results)


def _of_parts(
    family: Family, codes: Ints, ranks: Ints, columns: list[pa.Array], sizes: Ints
) -> Floats:
    """The aggregate of each part of each row, in the order of `parts_of`; NaN of small parts."""
    enough = sizes >= PARTS * PART_ROWS
    found = np.full((len(sizes), PARTS), np.nan)
    if enough.any():
        taken = enough[codes]
        parts = parts_of((np.cumsum(enough) - 1)[codes[taken]], ranks[taken])
        given = [column.filter(pa.array(taken)) for column in columns]
        states = family.fold(Groups(parts, int(enough.sum()) * PARTS), given)
        found[enough] = _numbers(family.finish(states)).reshape(-1, PARTS)
    return found.reshape(-1)


def _exactly(found: SampledWindows, answer: Answer, known: pa.Array, wanted: Mask) -> pa.Array:
    """Results, of all tuples of a row where wanted."""
    if not wanted.any():
        return known
    held = [column.filter(pa.array(wanted)) for column in found.exact_states(answer)]
    groups, columns = unfolded_rows(held)
    family = answer.function.family
    results = family.finish(family.fold(groups, columns))
    return pc.replace_with_mask(known, pa.array(wanted), results)


def _numbers(results: pa.Array) -> Floats:
    """Results as floats, NaN for NULL."""
    numbers: Floats = results.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
