"""Plans aggregates over tuple windows, whose state is the tuples themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.operate.tuple_window.operator import TupleAggregate
from tidegate.operate.tuple_window.spec import TupleSpec
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.window import WindowPlan, partitioner_by_key
from tidegate.plan.compatibility.query_record import Record, RecordedSubquery, Texts, typed_texts
from tidegate.plan.compatibility.stored_name import stored_names
from tidegate.plan.lowering.rule import Context, Lowered


class TupleWindowPlan(WindowPlan):
    """`[ROWS ... SLIDE ...]`: counts the tuples of a group in the total order."""

    def stored(self, arguments: Texts, kept: RecordedSubquery | None) -> Mapping[str, str]:
        return stored_names(arguments, kept, "x")

    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        partitioner = partitioner_by_key(asked, context)
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
