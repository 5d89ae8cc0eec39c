"""The partitioners that sources choose with `auto`, and the windows that must be merged for them.

A choice goes to all instances, and one of them stores it. The choices for the periods of a window
decide whether a key may be at several instances. If none can be, each instance answers its groups
of the window itself, and nothing is merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from tidegate.calendar.microsecond import time_text
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.aggregate.side_state import SideState
from tidegate.operate.change import OperatorChange
from tidegate.operate.operator import InstanceWork, MapWork
from tidegate.route.ledger import Chosen, Ledger
from tidegate.route.selection import CHEAP, KEEPING_VALUES, OF_USERS, Costs, PartitionerChoice
from tidegate.state.epoch import counted

CHOICES = "choices"
"""The name of this part of the state in a manifest."""

CHOICE_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("period", pa.int64()),
        ("epoch", pa.int64()),
        ("upstream", pa.string()),
        ("choice", pa.int64()),
        ("before", pa.int64()),
        ("apart", pa.bool_()),
        ("tuples", pa.int64()),
        ("groups", pa.int64()),
        ("instances", pa.int64()),
        ("by_hash", pa.int64()),
        ("by_key", pa.int64()),
        ("by_tuple", pa.int64()),
    ]
)
"""One row for each choice, in the order in which they were made; `bucket` is 0. See `Chosen`."""

_FIGURES = ("tuples", "groups", "instances", "by_hash", "by_key", "by_tuple")

Ends = tuple[int, int]
"""The windows with first time < end <= second time."""


@dataclass(frozen=True)
class ChoiceState(SideState):
    """Keeps choices as long as their periods are needed."""

    window: WindowPanes

    name: ClassVar[str] = CHOICES
    order: ClassVar[str] = "period"

    @property
    def schema(self) -> pa.Schema:
        return CHOICE_SCHEMA

    def first(self, frontier_us: int) -> int:
        return self.window.first_period(frontier_us)


def informed(work: MapWork, ledger: Ledger, spec: AggregateSpec) -> Ledger:
    """Give a ledger the earlier choices of its source, and the costs by which it chooses."""
    if ledger.informed:
        return ledger
    ledger.informed, ledger.costs = True, costs_of(spec)
    if not work.state.get(CHOICES):
        return ledger
    kept = ChoiceState(spec.window)
    first, names = kept.first(work.previous_us), ["period", "epoch", "upstream", "choice"]
    parts = kept.read(work.state, work.opened(), work.previous_us)
    for row in (row for part in parts for row in part.select(names).to_pylist()):
        if row["upstream"] != work.upstream or row["period"] < first:
            continue
        choice = PartitionerChoice(row["choice"])
        if row["epoch"] == int(ledger.mapping.epoch):
            ledger.tally(row["period"]).choice = choice
        else:
            ledger.former[row["period"]] = choice
    return ledger


def costs_of(spec: AggregateSpec) -> Costs:
    """The relative costs of groups, parts and values, by which a source compares partitioners."""
    definitions = [part.definition for function in spec.functions for part in function.parts]
    holistic = any(definition.holistic for definition in definitions)
    if any(definition.by_user for definition in definitions):
        return replace(OF_USERS, value=KEEPING_VALUES.value) if holistic else OF_USERS
    return KEEPING_VALUES if holistic else CHEAP


def chosen_by(work: MapWork, ledger: Ledger) -> pa.Table | None:
    """The choices of a split as rows, for all instances; None where it has chosen nothing."""
    taken, ledger.chosen = ledger.chosen, []
    rows = [_row(work, chosen) for chosen in taken]
    return pa.Table.from_pylist(rows, CHOICE_SCHEMA) if rows else None


def changes_of(
    work: InstanceWork, spec: AggregateSpec, arrived: Sequence[pa.Table]
) -> tuple[OperatorChange, ...]:
    """The choices that differ from the ones before; only the instance that writes them reports."""
    if not arrived or work.instance != work.mapping.owners[0]:
        return ()
    rows = pa.concat_tables(arrived).to_pylist()
    return tuple(
        _change(spec, row)
        for row in rows
        if row["tuples"] is not None and row["choice"] != (row["before"] or PartitionerChoice.HASH)
    )


def split_windows(window: WindowPanes, choices: Sequence[pa.Table]) -> list[Ends]:
    """The windows that may have a key at several instances, in order; the ranges may overlap.

    Every key is at one instance in a period in which all sources use `hash`. So it is if there is
    only one source, which uses `cam` among the same instances and never has two tasks. A window
    covers two periods at most. If both are of the same kind, its keys are at one instance too,
    because cAM keeps the places of keys from period to period.
    """
    found: list[Ends] = []
    kinds: dict[int, tuple[object, ...] | None] = {}
    for period, rows in _by_period(choices):
        kinds[period] = kind = _together(rows)
        # A period is as long as a window, so windows with tuples of it end before the end of the
        # next period. Those that also cover the period before end before the end of this one.
        if kind is None:
            found.append((window.period_begin(period), window.period_begin(period + 2) - 1))
        elif period - 1 in kinds and kinds[period - 1] not in (None, kind):
            found.append((window.period_begin(period), window.period_begin(period + 1) - 1))
    return sorted(found)


def divided(above_us: int, upto_us: int, split: Iterable[Ends]) -> Iterator[tuple[int, int, bool]]:
    """Cut the windows between two ends into ranges, and say of each whether it is in `split`."""
    for above, upto in split:
        above, upto = max(above, above_us), min(upto, upto_us)
        if above < upto:
            if above_us < above:
                yield above_us, above, False
            yield above, upto, True
            above_us = upto
    if above_us < upto_us:
        yield above_us, upto_us, False


def _together(rows: Sequence[dict[str, Any]]) -> tuple[object, ...] | None:
    """The kind of placing that keeps each key of a period at one instance; None where none does."""
    if all(row["choice"] == PartitionerChoice.HASH for row in rows):
        return (PartitionerChoice.HASH,)
    (row, *others) = rows
    if others or row["choice"] != PartitionerChoice.CAM or row["apart"]:
        return None
    return PartitionerChoice.CAM, row["upstream"], row["epoch"]


def _by_period(choices: Sequence[pa.Table]) -> list[tuple[int, list[dict[str, Any]]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    names = ["period", "epoch", "upstream", "choice", "apart"]
    for row in (row for part in choices for row in part.select(names).to_pylist()):
        found.setdefault(row["period"], []).append(row)
    return sorted(found.items())


def _change(spec: AggregateSpec, row: dict[str, Any]) -> OperatorChange:
    before, after = (
        str(PartitionerChoice(row["before"] or PartitionerChoice.HASH)),
        str(PartitionerChoice(row["choice"])),
    )
    source = row["upstream"].partition("/")[2]
    start = time_text(spec.window.period_begin(row["period"]))
    even = -(-row["tuples"] // row["instances"])
    text = (
        f"auto: {after} in place of {before} for {source} from {start} on, by "
        f"{row['tuples']:,} tuples of {counted(row['groups'], 'group')} for "
        f"{counted(row['instances'], 'instance')}: the fullest would have {row['by_hash']:,} with "
        f"hash, {row['by_key']:,} with cam, {row['by_tuple']:,} with pk, {even:,} with shuffle"
    )
    facts = {"source": source, "start": start, "before": before, "after": after}
    return OperatorChange(text, facts | {name: row[name] for name in _FIGURES})


def _row(work: MapWork, chosen: Chosen) -> dict[str, Any]:
    told = chosen.measured
    return {
        "bucket": 0,
        "period": chosen.period,
        "epoch": int(work.mapping.epoch),
        "upstream": work.upstream,
        "choice": int(chosen.choice),
        "before": None if chosen.before is None else int(chosen.before),
        "apart": chosen.apart,
    } | {name: None if told is None else getattr(told, name) for name in _FIGURES}
