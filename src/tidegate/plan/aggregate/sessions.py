"""Plans aggregates over sessions: one subquery, with all tuples of a key in one instance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidegate.errors import QueryError
from tidegate.operate.aggregate.pane.fold_placement import BY_INSTANCE, BY_MAP
from tidegate.operate.session.early import EarlySessions, MarkedSessions
from tidegate.operate.session.operator import FOLDED_BY_INSTANCE, FOLDED_BY_MAP, SessionFolding
from tidegate.plan.aggregate.held_state import stored_answer
from tidegate.plan.aggregate.lowered_aggregate import AskedAggregate, PlannedAnswer
from tidegate.plan.aggregate.window import WindowPlan, partitioner_by_key
from tidegate.plan.lowering.rule import Context, Lowered

_FOLDINGS = {BY_MAP.name: FOLDED_BY_MAP, BY_INSTANCE.name: FOLDED_BY_INSTANCE}


class SessionPlan(WindowPlan):
    """`[SESSION GAP ... MAX ...]`: the state is the open sessions of each group."""

    def early(self, planned: PlannedAnswer, every_us: int) -> PlannedAnswer:
        return replace(
            planned,
            sessions=EarlySessions,
            session_spec=partial(MarkedSessions, every_us=every_us),
            lines=(f"every {every_us}",),
        )

    def subqueries(
        self, asked: AskedAggregate, planned: PlannedAnswer, context: Context
    ) -> Iterator[Lowered]:
        partitioner = partitioner_by_key(asked, context)
        planned, held = stored_answer(asked, planned)
        window = self.window
        spec = planned.session_spec(window.gap_us, window.max_us, asked.keys, planned.functions)
        folding = self._folding(context.choices.partial)
        yield Lowered(
            leaves=asked.leaves,
            prefixes=planned.prefixes,
            operator=planned.sessions(spec, asked.key_names, partitioner, folding),
            ports=planned.ports,
            lines=(f"session {spec}", *asked.lines, *planned.lines, *planned.after),
            record=replace(
                held,
                state=(*asked.state_lines(planned.clauses), f"window {spec}"),
                after=planned.shown,
            ),
        )

    def _folding(self, partial: str | None) -> SessionFolding:
        """Where tuples are folded: as the run says, else in map tasks; with MAX, never there."""
        if self.window.max_us is None:
            return _FOLDINGS[partial or BY_MAP.name]
        if partial == BY_MAP.name:
            raise QueryError(
                f"partial {partial}",
                "map tasks cannot tell where a session with a MAX begins",
                f"[{self.window}]",
                f"Leave the option out, or ask for {BY_INSTANCE.name}.",
            )
        return FOLDED_BY_INSTANCE
