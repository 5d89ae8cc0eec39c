"""Plans aggregates over time windows: one subquery, or two if its instances close only parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from tidegate.calendar.local_time import LocalPeriods
from tidegate.errors import QueryError
from tidegate.expression.tree import Column
from tidegate.operate.aggregate.answer import PartAnswer
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane.calendar_window import CalendarPanes
from tidegate.operate.aggregate.pane.early import EarlyAggregate
from tidegate.operate.aggregate.pane.fold_placement import FOLDINGS, folding_for
from tidegate.operate.aggregate.pane.overlap import overlaps
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow, WindowPanes
from tidegate.operate.aggregate.placement import Placement, placement_of
from tidegate.operate.aggregate.user import USER, Aggregator
from tidegate.operate.port import Port
from tidegate.plan.aggregate.held_state import stored_answer
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.window import WindowPlan, asked_partitioner, in_one_place
from tidegate.plan.compatibility.query_record import Record
from tidegate.plan.lowering.rule import Context, Lowered
from tidegate.plan.pushdown import Leaf
from tidegate.query.name import WINDOW, column
from tidegate.query.node.instant import event_offset
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner


class TimeWindowPlan(WindowPlan):
    """`[RANGE ... SLIDE ...]`: the state is panes, which are merged for each window."""

    @property
    def panes(self) -> WindowPanes:
        return PaneWindow(self.window.range_us, self.window.slide_us, self.window.offset_us)

    def early(self, planned: PlannedAnswer, every_us: int) -> PlannedAnswer:
        operator = partial(EarlyAggregate, every_us=every_us)
        return replace(planned, panes=self.panes.marked(every_us), operator=operator)

    def shares_work(self, function: Function) -> bool:
        return overlaps(self.panes.windows_of_tuple, (function,))

    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        self._check_windows(context.choices.max_windows)
        placement = _placement(asked, planned, context)
        planned, held = stored_answer(asked, planned)
        functions = {f.name: f for f in planned.functions}
        panes = planned.panes or self.panes
        spec = AggregateSpec(panes, asked.keys, tuple(functions.values()))
        split = placement.splits_keys or planned.answer.together
        answer = PartAnswer(planned.answer) if split else planned.answer
        operator = planned.operator(spec, asked.key_names, placement, answer)
        ports = _part_ports(operator, event_offset(asked.base)) if split else planned.ports
        yield Lowered(
            leaves=asked.leaves,
            prefixes=planned.prefixes,
            operator=operator,
            ports=ports,
            lines=(
                panes.line,
                *asked.lines,
                *planned.lines,
                *placement.partitioner.lines,
                *(() if split else planned.after),
            ),
            record=replace(
                held,
                state=(
                    *asked.state_lines(planned.clauses),
                    f"window {panes}",
                    *placement.partitioner.lines,
                ),
                after=((),) * len(ports) if split else planned.shown,
            ),
        )
        if split:
            merging = MergeWindows(spec, asked.key_names, planned.answer)
            yield _merging(merging, context, len(ports), planned)

    def _check_windows(self, most: int | None) -> None:
        """Raises if the slide puts every tuple into more windows than the run allows."""
        count = self.panes.windows_of_tuple
        if most is not None and count > most:
            raise QueryError(
                f"window {self.window}",
                f"a tuple must be in at most {most:,} windows",
                f"{count:,}",
                "Make SLIDE longer, or ask for so many: with --max-windows-per-tuple "
                f"{count}, in Python with max_windows_per_tuple={count}.",
            )


class CalendarPlan(TimeWindowPlan):
    """`[RANGE ... TIME ZONE ...]`: the same with calendar panes, which differ in length."""

    @property
    def panes(self) -> WindowPanes:
        window = self.window
        periods = LocalPeriods(window.unit, window.time_zone, window.offset_us)
        return CalendarPanes(window.length, window.slide, periods, str(window))


def _placement(asked: AskedAggregate, planned: PlannedAnswer, context: Context) -> Placement:
    partitioner = asked_partitioner(asked, context)
    if planned.by_key is not None:
        partitioner = in_one_place(
            partitioner, "splits the tuples of a key, and these must be together", planned.by_key
        )
    partitioner = _with_merges(partitioner, planned.parts)
    partial = context.choices.partial
    folding = folding_for(planned.parts, partitioner.splits_keys)
    return placement_of(partitioner, planned.parts, FOLDINGS[partial] if partial else folding)


def _with_merges(partitioner: Partitioner, functions: Sequence[Function]) -> Partitioner:
    """The partitioner, or a replacement; raises if it splits keys and a function has no merge."""
    users = [f.parameters[0] for f in functions if f.definition is USER]
    for user in users:
        if type(user).merge is not Aggregator.merge:
            continue
        found = partitioner.without_merging()
        if found is None:
            raise QueryError(
                f"aggregate {type(user).__qualname__}",
                f"needs a method merge where {partitioner.text} splits keys",
                "none",
                f"Write one, or use {Hash.name}.",
            )
        partitioner = found
    return partitioner


def _part_ports(operator: WindowAggregate, offset_us: int) -> tuple[Port, ...]:
    """Ports that pass the states of windows as rows to the merging subquery.

    If the aggregate finishes some windows itself, another port passes their rows.
    """
    spec = operator.spec
    schemas = [spec.window_schema, *([spec.result_schema] if operator.finishes else [])]
    return tuple(
        Port(
            schema=schema,
            outputs=tuple((f.name, Column(f.name, f.type)) for f in schema if f.name not in WINDOW),
            time=WINDOW[1],
            offset_us=offset_us,
        )
        for schema in schemas
    )


def _merging(
    operator: MergeWindows, context: Context, inputs: int, planned: PlannedAnswer
) -> Lowered:
    """The second subquery, which merges and finishes the windows of the first."""
    origins = [context.newest(port) for port in range(inputs)]
    columns = [{name: column(name) for name in origin.schema.names} for origin in origins]
    leaves = tuple(Leaf(o, (), named) for o, named in zip(origins, columns, strict=True))
    prefixes = [context.front.prefixes((lf,), [list(lf.columns.items())]) for lf in leaves]
    return Lowered(
        leaves=leaves,
        prefixes=tuple(prefix for of_leaf in prefixes for prefix in of_leaf),
        operator=operator,
        ports=planned.ports,
        lines=tuple(planned.after),
        record=Record(after=planned.shown),
    )
