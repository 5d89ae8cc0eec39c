"""Aggregates over windows of time as operators, between dealt tuples and the rows of windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.collect.window import WindowOrder
from tidegate.duration import duration_text, window_text
from tidegate.model.operation import Operation
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.batch import BalancedBatch
from tidegate.operate.aggregate.balanced.figures import BALANCED_SHOWN, balanced_window
from tidegate.operate.aggregate.balanced.survey import (
    SURVEY,
    SurveyKeeper,
    survey_partials,
    survey_rows,
)
from tidegate.operate.aggregate.choice import (
    CHOICE_SCHEMA,
    CHOICES,
    ChoiceKeeper,
    Ends,
    changes_of,
    chosen_by,
    divided,
    informed,
    known_choices,
    split_windows,
    write_choices,
)
from tidegate.operate.aggregate.figures import (
    MEMORY,
    SENT_SHOWN,
    ToldColumns,
    WindowCounts,
    WindowWatch,
    sent_figures,
    sent_window,
)
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.ledger import LEDGER, LedgerKeeper, noted, opened, write_ledger
from tidegate.operate.aggregate.merging import PARTS
from tidegate.operate.aggregate.open_panes import OpenPanes, split
from tidegate.operate.aggregate.pane import (
    PART,
    AggregateSpec,
    close_steps,
    fold,
    fold_placed,
    merge,
    needed_from,
    placed,
    sealed_before,
)
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.aggregate.state import PANES, PaneKeeper, read_panes, write_panes
from tidegate.operate.aggregate.tenure import (
    closings,
    migration_of,
    received,
    shares_of,
    stored,
)
from tidegate.operate.aggregate.thinning import Thinning
from tidegate.operate.bucket_work import BucketWork, rows_by_bucket, values_by_bucket
from tidegate.operate.figures import Shown, ToldWindow, Values
from tidegate.operate.keeper import Keeper
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Migration,
    Operator,
    Result,
    Share,
    plain_names,
)
from tidegate.operate.spill import Spill
from tidegate.route.auto import Auto
from tidegate.route.hash import BY_HASH
from tidegate.route.ledger import LEDGER_SCHEMA
from tidegate.route.load_aware import Hybrid, LoadAware
from tidegate.route.partitioner import Partitioner
from tidegate.route.reach import Reach
from tidegate.route.registry import text_of
from tidegate.route.sent import Sent
from tidegate.state.segment import Segment

MAP, INSTANCE = "map", "instance"

EVERY_WINDOW = ((MIN_US, MAX_US),)

_EVEN = 0.5
"""How much tuples count against keys in the hybrid load, where a partitioner does not say it."""


@dataclass(frozen=True)
class WindowAggregate(Operator):
    """Folds tuples into panes on the map side, merges them and closes windows in the instances.

    With `partly`, its rows are states of windows by bucket, for a MergeWindows to finish, so that a
    partitioner may give tuples of one key to several instances; or for a BoundedWindows to answer.
    Where it `finishes`, it has a second port, for windows that need no merging: see `choice`.
    """

    kind: ClassVar[str] = "aggregate"
    waits: ClassVar[bool] = False
    levels: ClassVar[tuple[str, ...]] = (MEMORY,)

    spec: AggregateSpec
    key_names: tuple[str, ...]
    partitioner: Partitioner = BY_HASH
    partly: bool = False
    folds: str = MAP
    """Who folds tuples into partials: map tasks, which then route partials, or instances."""
    by_auto: bool = False
    """Whether it is `auto` that has chosen its partitioner, for good where that is `hash`."""
    finishes: bool = False
    """Whether it finishes windows itself of which no key can be at several instances."""
    told: ToldColumns | None = None
    """Where windows that it finishes have what is told of them, where it sheds or has an error."""
    balancing: Balancing | None = None
    """How it balances the tuples of windows by trimming groups, where it does."""

    order = WindowOrder()

    @property
    def map_steps(self) -> tuple[str, ...]:
        return ("panes",) if self.folds == MAP else ("route",)

    @property
    def operation(self) -> Operation:
        range_s, slide_s = self.spec.range_us / 1e6, self.spec.slide_us / 1e6
        return Operation(self.kind, range_s=range_s, slide_s=slide_s)

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        rows, sent = plain_names(tuples), Sent(work.mapping, work.spans.clock)
        router = work.router(self.partitioner).counting(sent)
        if isinstance(self.partitioner, LoadAware):
            ledger = opened(work, self.partitioner, self.spec)
            router = router.with_ledger(informed(work, ledger, self.spec) if self._auto else ledger)
        dealt = (fold if self.folds == MAP else placed)(self.spec, rows, router)
        if self._tells:
            work.told.append(sent_figures(self.spec, sent, router.ledger))
        work.spans.mark("map fold" if self.folds == MAP else "map place")
        if work.mapping.formers:
            shares = shares_of(self.spec, work, dealt)
        else:
            shares = work.by_bucket(dealt)
        shares += self._surveyed(work, dealt)
        if router.ledger is None:
            return shares
        chosen = chosen_by(work, router.ledger)
        told = [] if chosen is None else [Share.for_all(chosen)]
        return [*shares, *noted(work, router.ledger), *told]

    def _surveyed(self, work: MapWork, dealt: pa.Table) -> list[Share]:
        """What a split has counted for who balances windows, for all instances."""
        if not self._balances or not dealt.num_rows:
            return []
        assert self.balancing is not None
        survey = survey_partials if self.folds == MAP else survey_rows
        found = survey(self.balancing, self.spec, dealt, work.mapping.buckets)
        work.spans.mark("map survey")
        return [Share.for_all(found)]

    @property
    def _balances(self) -> bool:
        """Whether there are groups that may be trimmed."""
        return self.balancing is not None and self.balancing.holds

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Fold the batch's partials into the state of this instance's buckets; close windows.

        State is needed only when the frontier has passed the end of a pane, and read only where the
        batch before has not left it in memory. What is left for later, the partials of open panes
        and the complete panes that open windows still need, goes into segments.
        """
        spec = self.spec
        sealed, needed = sealed_before(spec, work.frontier_us), needed_from(spec, work.frontier_us)
        rows, notes, chosen, surveyed = self._arrived(arrived)
        balance = None
        if self.balancing is not None and self._balances:
            balance = BalancedBatch(self.balancing, spec, work, surveyed)
        thinning = Thinning(spec, work)
        news = thinning.thinned(self._partials(rows))
        work.spans.mark("instance merge")
        panes, keep = news.slice(0, 0), [news]
        held: OpenPanes | None = work.kept.take(PANES)
        if sealed > sealed_before(spec, work.previous_us):
            held = read_panes(work, spec) if held is None else held
            work.spans.mark("instance read state")
            complete, later = split(news, sealed)
            due, held = held.due(sealed)
            ended = merge(spec, [*due, complete])
            panes = pa.concat_tables([*(part.rows for part in held.complete), ended])
            _, lasting = split(ended, needed)
            keep = [lasting, later]
            # Where there is much, dividing it costs, and is in vain.
            fits = work.kept.fits(held.nbytes)
            held = held.needed(needed).with_complete(lasting).with_waiting(later) if fits else None
            work.spans.mark("instance seal")
        elif held is not None or not work.state.get(PANES):
            held = (held or OpenPanes()).with_waiting(news)
        if work.mapping.formers:
            keep = [stored(spec, work, part) for part in keep]
        segments = {PANES: write_panes(work.store, work.name, keep, sealed)}
        if notes:
            segments[LEDGER] = write_ledger(work, spec.range_us, notes)
        if chosen:
            segments[CHOICES] = write_choices(work, spec, chosen)
        segments |= {} if balance is None else balance.written()
        work.spans.mark("instance write")
        counts = WindowCounts(spec.range_us)
        watch = None if self.told is None else self.told.watch(spec.range_us, work.kept)
        steps = self._steps(panes, work, self._split(work, chosen), balance)
        closed, groups = self._closed(steps, work, counts, watch)
        if held is not None:
            held = self._lasting(held, work)
            work.kept.leave(PANES, held, held.nbytes)
            thinning.leave(sealed)
        touched = rows if self.folds == MAP else [*rows, news]
        return Result(
            closed,
            sum(part.num_rows for part in rows),
            segments,
            {"closed": groups} | ({} if watch is None else watch.counts()),
            bucket_work=self._touched([*touched, panes], work.mapping.buckets),
            windows=(
                *(counts.figures() if self._tells else ()),
                *(() if watch is None else watch.figures()),
                *(() if balance is None else balance.figures()),
            ),
            changes=changes_of(work, spec, chosen),
        )

    @property
    def _tells(self) -> bool:
        """Whether there is a choice to tell of: all tuples of one group are in one place."""
        return bool(self.spec.keys) or self.partly

    def window_figures(self, told: ToldWindow) -> Values:
        p = self.partitioner.p if isinstance(self.partitioner, Hybrid) else _EVEN
        found = sent_window(told, p) | balanced_window(told)
        found |= {} if self.told is None else self.told.window(told)
        if self.partly:
            return found
        return found | {"groups": found["parts"], "groups_split": 0, "aggregation_cost": 1}

    @property
    def shown_figures(self) -> tuple[Shown, ...]:
        if self.told is not None:
            return self.told.shown
        if self._balances and not self.partly:
            return BALANCED_SHOWN
        return SENT_SHOWN if self.partitioner.splits_keys else ()

    def _arrived(self, arrived: Sequence[Arrival]) -> tuple[list[pa.Table], ...]:
        """What map tasks have dealt, noted in their ledgers, chosen, and counted of bins."""
        kinds: tuple[list[pa.Table], ...] = [], [], [], []
        known = [LEDGER_SCHEMA, CHOICE_SCHEMA]
        if self.balancing is not None and self._balances:
            known.append(self.balancing.survey(self.spec).partial_schema)
        for arrival in arrived:
            found = [i for i, schema in enumerate(known, 1) if arrival.rows.schema.equals(schema)]
            kinds[found[0] if found else 0].append(arrival.rows)
        return kinds

    @property
    def _auto(self) -> bool:
        """Whether sources choose among partitioners."""
        return isinstance(self.partitioner, Auto)

    def _split(self, work: InstanceWork, chosen: Sequence[pa.Table]) -> Sequence[Ends]:
        """The windows that have to be merged."""
        if not self.finishes:
            return EVERY_WINDOW if self.partly else ()
        return split_windows(self.spec.range_us, known_choices(work, self.spec, chosen))

    def _partials(self, rows: Sequence[pa.Table]) -> pa.Table:
        """The partials of what was dealt, one for each bucket, pane and group."""
        if self.folds == INSTANCE and rows:
            return fold_placed(self.spec, pa.concat_tables(rows))
        # What one split brings is merged already.
        return rows[0] if len(rows) == 1 else merge(self.spec, rows)

    def _touched(self, partials: Sequence[pa.Table], buckets: int) -> BucketWork:
        """What arrived and what windows were closed with: partials, and the values they keep."""
        work = rows_by_bucket(partials, buckets)
        for function in self.spec.functions:
            if function.definition.holistic:
                lists = (name for name, type_ in function.state if pa.types.is_list(type_))
                for name in lists:
                    kept = [part for part in partials if name in part.column_names]
                    work += values_by_bucket(kept, name, buckets)
        return work

    def _lasting(self, held: OpenPanes, work: InstanceWork) -> OpenPanes:
        """What the next batch has use for, where former owners have finished with this one."""
        after = work.mapping.lasting(work.frontier_us)
        if after.formers == work.mapping.formers:
            return held
        return held.those(lambda rows: received(self.spec, after, work.instance, rows))

    @property
    def reach(self) -> Reach:
        return Reach(self.spec.range_us)

    def migration(
        self, frontier_us: int, state: Mapping[str, Sequence[Segment]], counts: Mapping[str, int]
    ) -> Migration | None:
        """Windows stay with the owners of the epoch in which they begin."""
        highest = max((s.high for s in state.get(PANES, ()) if s.rows), default=None)
        return None if highest is None else migration_of(self.spec, frontier_us, highest)

    def _closed(
        self,
        steps: Iterator[tuple[bool, pa.Table]],
        work: InstanceWork,
        counts: WindowCounts,
        watch: WindowWatch | None = None,
    ) -> tuple[tuple[pa.Table, ...], int]:
        """The rows of windows that end, by port, and how many groups these windows have.

        They are made step by step, for they may be very many; `counts` and `watch` see them.
        """
        spec, closed = self.spec, 0
        spills = [Spill.of(work, i) for i in range(len(work.ports))]
        try:
            for partly, results in chain(self._none(), steps):
                closed += results.num_rows
                counts.add(results)
                if watch is not None:
                    watch.add(results)
                work.spans.mark("instance close")
                keys = [name for name, _ in spec.keys] + [PART] * partly
                for place, (port, spill) in enumerate(zip(work.ports, spills, strict=True)):
                    if not self.finishes or partly == (place == PARTS):
                        spill.add(window_rows(port, keys, results))
                work.spans.mark("instance finish")
            return tuple(spill.table() for spill in spills), closed
        finally:
            for spill in spills:
                spill.drop()

    def _none(self) -> Iterator[tuple[bool, pa.Table]]:
        """No rows for each port, so that it has their columns."""
        if self.partly:
            yield True, self.spec.window_schema.empty_table()
        if self.finishes or not self.partly:
            yield False, self._result_schema.empty_table()

    @property
    def _result_schema(self) -> pa.Schema:
        """The columns of windows that it finishes."""
        if self.balancing is None or not self._balances:
            return self.spec.result_schema
        return self.balancing.result_schema(self.spec)

    def _steps(
        self,
        panes: pa.Table,
        work: InstanceWork,
        split: Sequence[Ends],
        balance: BalancedBatch | None,
    ) -> Iterator[tuple[bool, pa.Table]]:
        """The rows of windows that end, step by step, and whether they are closed in part.

        Those of `split` are.
        """
        for part, above_us, upto_us in closings(self.spec, work, panes):
            for above, upto, partly in divided(above_us, upto_us, split):
                held = partly or balance is not None
                for results in close_steps(self.spec, part, above, upto, partly=held):
                    if balance is not None:
                        results = balance.closed(results, partly)
                    yield partly, results

    def keepers(self) -> Mapping[str, Keeper]:
        kept: dict[str, Keeper] = {PANES: PaneKeeper(self.spec)}
        if isinstance(self.partitioner, LoadAware):
            kept[LEDGER] = LedgerKeeper(self.spec.range_us)
        if self._auto:
            kept[CHOICES] = ChoiceKeeper(self.spec.range_us)
        if self.balancing is not None and self._balances:
            kept[SURVEY] = SurveyKeeper(self.balancing.survey(self.spec))
        return kept

    def title(self) -> str:
        what = "aggregate in part" if self.partly else "aggregate"
        return f"{what} over [{_window(self.spec)}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        spec = self.spec
        panes = spec.range_us // spec.pane_us
        lines = [f"panes: {duration_text(spec.pane_us)}, {panes} per window"]
        functions = [part for f in spec.functions for part in f.parts]
        constant = [_call(f, texts) for f in functions if not f.definition.holistic]
        holistic = [_call(f, texts) for f in functions if f.definition.holistic]
        if constant:
            side = "on the map side" if self.folds == MAP else "in the instances"
            lines.append(f"pre-aggregated per pane {side}: {', '.join(constant)}")
        if holistic:
            lines.append(f"exact holistic, values kept per pane: {', '.join(holistic)}")
        lines += [] if self.balancing is None else self.balancing.details()
        lines += [] if self.told is None else self.told.details()
        lines += self._routing()
        way = "bucket" if not self.partitioner.splits_keys else text_of(self.partitioner)
        return [*lines, f"merge panes, close windows: one task per instance, shuffle by {way}"]

    def _routing(self) -> list[str]:
        """What is routed, where that is not simply a key."""
        if not self.partitioner.splits_keys and self.by_auto:
            return [
                "routed: partials, by their key; auto is hash, for a key is as much work as others"
            ]
        if not self.partitioner.splits_keys:
            return [] if self.folds == MAP else ["routed: tuples, by their key"]
        unit = "partials, weighted by their tuples" if self.folds == MAP else "tuples"
        lines = [f"routed: {unit}; a key may be at several instances, and is merged after them"]
        if self._auto:
            lines.append("auto: each source chooses hash, cam, pk or shuffle for each window")
        return lines


def _window(spec: AggregateSpec) -> str:
    return window_text(spec.range_us, spec.slide_us)


def _call(function: Function, texts: Mapping[str, str]) -> str:
    """A function by its arguments as the query writes them."""
    given = [texts.get(a, a).replace("`", "") for a in function.arguments]
    star = ["*"] if not given and function.definition.star else []
    return f"{function.title}({', '.join([*given, *star, *function.shown])})"
