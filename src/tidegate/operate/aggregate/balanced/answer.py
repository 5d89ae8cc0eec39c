"""Answers groups from their held tuples: from all of them, or from a sample if they are trimmed.

A trimmed group is answered from its tuples of lowest priority, as many as the error takes. If these
are not reliable, or the error is too large, the group is exact, as are groups that are not trimmed.
A row depends only on the tuples of its group, and on whether the group is trimmed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidegate.approx.decision import Windows
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.bounded.answering import Answer
from tidegate.operate.aggregate.bounded.cells import Cells, exactly
from tidegate.operate.aggregate.bounded.moment import moment
from tidegate.operate.aggregate.bounded.quantile import quantile
from tidegate.operate.aggregate.bounded.user_aggregate import own
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.estimate import KEPT, MOMENTS, OWN, QUANTILES
from tidegate.operate.aggregate.functions.raw_arguments import unfolded_rows
from tidegate.operate.aggregate.sample.sample_state import Sampled, lowest_rows
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.order import Ints, Mask


@dataclass(frozen=True)
class Balanced:
    """The columns of `Answering.columns`, with a row for each window and group.

    `tuples` is the number of tuples of each group, `looked_at` how many were evaluated.
    """

    columns: list[pa.Array]
    tuples: Ints
    looked_at: Ints


def balanced(rules: Balancing, states: Mapping[str, States]) -> Balanced:
    """Answer rows from the merged states of each function, by its name."""
    n, trim, *lists = states[rules.state.name]
    tuples: Ints = n.to_numpy()
    chosen: Mask = trim.to_numpy(zero_copy_only=False) & (tuples > rules.fewest)
    held = _evaluated(rules, [n, *lists], chosen)
    cells, looked_at = held.cells, np.where(chosen, 0, tuples)
    looked_at[chosen] = held.looked_at
    for answer in rules.answering.answers:
        if answer.way == KEPT:
            assert answer.state is not None
            cells[answer.function.name] = exactly(
                answer.function.family.finish(states[answer.state])
            )
    found = [cells[answer.function.name] for answer in rules.answering.answers]
    columns = [column for c in found for column in (c.value, c.low, c.high)]
    exact: Mask = np.logical_and.reduce([c.exact for c in found])
    return Balanced([*columns, pa.array(exact)], tuples, looked_at)


@dataclass(frozen=True)
class _Held:
    """The cells of held aggregates by name, and the evaluated tuples of the chosen rows."""

    cells: dict[str, Cells]
    looked_at: Ints


def _evaluated(rules: Balancing, states: States, chosen: Mask) -> _Held:
    """Evaluate chosen rows from samples where these are good enough, others from all tuples."""
    if not chosen.any():
        found = _exact(rules, rules.held, states)
        return _Held({name: exactly(value) for name, value in found.items()}, np.empty(0, np.int64))
    mine = _those(states, chosen)
    cells = _sampled_cells(rules, mine)
    tuples: Ints = mine[0].to_numpy()
    looked_at = np.maximum.reduce([_evaluated_rows(c, tuples) for c in cells.values()])
    if not chosen.all():
        others = _exact(rules, rules.held, _those(states, ~chosen))
        cells = {name: _joined(chosen, c, exactly(others[name])) for name, c in cells.items()}
    return _Held(cells, looked_at)


def _evaluated_rows(cells: Cells, tuples: Ints) -> Ints:
    assert cells.looked is not None
    return np.where(cells.exact, tuples, cells.looked.rows)


def _sampled_cells(rules: Balancing, states: States) -> dict[str, Cells]:
    """Answer rows from samples, or from all tuples where the sample is not good enough.

    Each row is treated as a window of its own. It takes the largest sample that is worth it from
    the tuples that an aggregate sees; the answer evaluates as much of it as the error takes.
    """
    count = len(states[0])
    groups, (words, *_) = unfolded_rows(states[:2])
    cells: dict[str, Cells] = {}
    for answer in rules.held:
        sampled = answer.sampled
        assert sampled is not None
        lists = _arguments(rules, answer, states)
        (rule,) = sampled.parameters
        family = Sampled(sampled.types, rule.sampling if answer.way == QUANTILES else rule)
        drawn = family.sample(groups, words.to_numpy(), [column.flatten() for column in lists])
        lowest = lowest_rows(drawn, family.sampling.k)
        known = {sampled.name: lowest, _ALL: [states[0], *lists]}
        for mean, column in zip(answer.means, lists, strict=False):
            if mean is not None:
                known[mean.name] = mean.family.fold(groups, [column.flatten()])
        whole = replace(answer, state=_ALL)
        found = _HeldWindows(rules.answering, whole, known, Windows(np.arange(count), count))
        cells[answer.function.name] = _WAYS[answer.way](found)
    return cells


_WAYS: dict[str, Callable[[SampledWindows], Cells]] = {
    QUANTILES: quantile,
    OWN: own,
    **dict.fromkeys(MOMENTS, moment),
}


class _HeldWindows(SampledWindows):
    """Rows whose tuples are all held; exact results are folded only where they are wanted."""

    def exact_where(self, wanted: Mask) -> pa.Array:
        return self.exactly(pa.nulls(len(wanted), self.answer.function.result), wanted)


_ALL = "all"
"""A name for the state of all tuples; no function has this name."""


def _exact(rules: Balancing, answers: Sequence[Answer], states: States) -> dict[str, pa.Array]:
    """The results over all held tuples, by the name of the aggregate."""
    results = {}
    for answer in answers:
        groups, columns = unfolded_rows([states[0], *_arguments(rules, answer, states)])
        family = answer.function.family
        results[answer.function.name] = family.finish(family.fold(groups, columns))
    return results


def _arguments(rules: Balancing, answer: Answer, states: States) -> list[pa.Array]:
    """The lists with the arguments of an aggregate, from states (n, priority, arguments...)."""
    places = [rules.state.arguments.index(name) for name in answer.function.arguments]
    return [states[2 + place] for place in places]


def _those(states: States, mask: Mask) -> States:
    return [column.filter(pa.array(mask)) for column in states]


def _joined(mask: Mask, there: Cells, elsewhere: Cells) -> Cells:
    """The cells of all rows: those that `mask` marks from `there`, the others from `elsewhere`."""
    place = np.where(mask, np.cumsum(mask) - 1, mask.sum() + np.cumsum(~mask) - 1)

    def column(one: pa.Array, other: pa.Array) -> pa.Array:
        return pa.concat_arrays([one, other]).take(pa.array(place))

    return Cells(
        column(there.value, elsewhere.value),
        column(there.low, elsewhere.low),
        column(there.high, elsewhere.high),
        np.concatenate([there.exact, elsewhere.exact])[place],
        np.concatenate([there.error, elsewhere.error])[place],
    )
