"""Aggregates over windows of tuples, whose state is the tuples themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.errors import QueryError
from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.plan.aggregate.asked import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.window import WindowPlan, asked_partitioner
from tidegate.plan.lowered import Context, Lowered
from tidegate.plan.recorded import Record, RecordedSubquery, Texts, typed_texts
from tidegate.plan.stored_name import stored_names
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner


class TupleWindowPlan(WindowPlan):
    """`[ROWS ... SLIDE ...]`: the tuples of a group are counted in their order."""

    def stored(self, arguments: Texts, kept: RecordedSubquery | None) -> Mapping[str, str]:
        return stored_names(arguments, kept, "x")

    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        partitioner = self._together(asked_partitioner(asked, context))
        rows, slide = self.window.rows, self.window.slide
        spec = TupleSpec(rows, slide, asked.keys, asked.arguments, asked.functions)
        stored = typed_texts(asked.prefixes, asked.texts)
        yield Lowered(
            leaves=asked.leaves,
            prefixes=planned.prefixes,
            operator=TupleAggregate(spec, asked.key_names, partitioner),
            ports=planned.ports,
            lines=(f"rows {rows} {slide}", *asked.lines, *planned.lines, *planned.after),
            record=Record(
                state=(*asked.state_lines(planned.clauses), f"window {self.window}"),
                columns={name: stored[name] for name, _ in asked.arguments},
                after=planned.shown,
            ),
        )

    def _together(self, partitioner: Partitioner) -> Partitioner:
        """Refuse to split keys where the tuples of one are counted in their order."""
        found = partitioner.in_one_place()
        if found is None:
            raise QueryError(
                f"partitioner {partitioner.text}",
                "may split the tuples of a key only over windows of time, whose parts can be "
                "merged",
                f"[{self.window}]",
                f"Use {Hash.name}, or write a window of time: [RANGE 1 MINUTE].",
            )
        return found
