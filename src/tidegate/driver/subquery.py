"""Holds one subquery of a running query: its mapping, its state and its compactors."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate import schedule
from tidegate.batch import MIN_US, EpochId
from tidegate.driver.compactor import Compactor
from tidegate.driver.migration import InputProgress, handed_over
from tidegate.driver.options import RunOptions
from tidegate.driver.report.change_log import ChangeLog
from tidegate.driver.report.observe import LoadLog
from tidegate.driver.report.window_log import WindowLog
from tidegate.driver.tables import Tables
from tidegate.elastic.handover import MOST_BATCHES, Site, relieved
from tidegate.execute.job import Job, Outcome
from tidegate.execute.runner import Draft, JobRunner
from tidegate.execute.splits import splits_of, time_span
from tidegate.gate.cut import Cut
from tidegate.memory import ANY, Allowance
from tidegate.plan.physical import Edge, Plan, Subquery
from tidegate.route import mapping as route
from tidegate.route.reach import Reach
from tidegate.sink.protocol import PartWriter
from tidegate.state.manifest import Manifest
from tidegate.state.segment.segment import Segment
from tidegate.state.store import Store

_log = logging.getLogger(__name__)


class RunningSubquery:
    """A subquery with its mapping, its state and the compactors of that state.

    The thread of the loop owns it. The segments it holds are those of the newest manifest.
    """

    def __init__(
        self,
        plan: Plan,
        number: int,
        store: Store,
        telling: frozenset[int],
        tables: Tables,
        applied: Callable[[Subquery], Subquery] = lambda subquery: subquery,
        memory: Allowance = ANY,
    ) -> None:
        self.subquery = subquery = plan.subqueries[number]
        self.target = plan.sole_target(number)
        """The only output of this subquery, which tasks may write if its rows are many; or None."""
        self._store = store
        self._held = plan.hold
        self._telling = telling
        self._tables = tables
        self._applied = applied
        """Returns the subquery as the tasks of the batch see it, with its rates of shedding."""
        joined = (t.table for p in subquery.prefixes for t in p.lookups)
        self._table_names = frozenset([*joined, *subquery.operator.traits.tables])
        self._memory = memory
        self._outputs = plan.output_ports(number)
        self._compactors = {
            what: Compactor(store, keeper, f"{subquery.key}-{what}-compact", memory)
            for what, keeper in subquery.operator.state.keepers.items()
        }
        self._state: dict[str, tuple[Segment, ...]] = {}
        self._run = schedule.current().token()
        self._last: Job | None = None
        """The job of the newest batch that this run committed."""
        self._before: Mapping[str, int] = {}
        """The operator's counts before the newest drafted batch."""
        self.load_log = LoadLog()
        self.window_log = WindowLog(subquery.operator)
        self.change_log = ChangeLog()

    @property
    def name(self) -> str:
        return self.subquery.name

    def key(self, what: str) -> str:
        """The name that a part of the state, or a count, has in a manifest."""
        return f"{self.subquery.key}/{what}"

    def mapping(self, manifest: Manifest) -> route.Mapping:
        """The mapping in a manifest; an even one if the query is new there (`--start-empty`)."""
        held = manifest.mappings.get(self.subquery.key)
        if held is None:
            return route.even(manifest.buckets, manifest.instances)
        return route.restored(
            held["epoch"], held["instances"], held["owners"], held.get("formers", ())
        )

    def going_on(self, manifest: Manifest) -> route.Mapping:
        """The mapping for the next batch, without the former owners that are done."""
        mapping = self.mapping(manifest)
        if self._last is None:
            # A new run has nothing in memory, so a former owner has no advantage: every owner
            # loads the stored state of its buckets.
            return replace(mapping, formers=())
        lasting = mapping.lasting(manifest.frontier_us, self.counts(manifest.counters))
        after = relieved(lasting, manifest.batch + 1)
        if after is not lasting:
            _log.info(
                "%s: tuples that end the windows of former owners have not come in %d batches; "
                "what is left is handed over by its state",
                self.name,
                MOST_BATCHES,
            )
        return after

    def counts(self, counters: Mapping[str, int]) -> dict[str, int]:
        """The operator's counts over all batches, from the counters of a manifest."""
        return {n: counters.get(self.key(n), 0) for n in self.subquery.operator.traits.counted}

    def finishing(
        self, mapping: route.Mapping, frontier_us: int, counters: Mapping[str, int]
    ) -> EpochId | None:
        """The oldest epoch whose owners still have windows to finish; None if there is none."""
        formers = mapping.lasting(frontier_us, self.counts(counters)).formers
        return formers[0].epoch if formers else None

    def handed_over(
        self, manifest: Manifest, before: route.Mapping, after: route.Mapping, options: RunOptions
    ) -> tuple[route.Mapping, dict[str, Any]]:
        """The mapping of a new epoch, and how its buckets are handed over, for its record."""
        last_us = manifest.frontier_us if self._last is None else self._last.previous_us
        arrived = InputProgress(
            manifest.frontier_us,
            self.counts(manifest.counters),
            self._before,
            0 if last_us == MIN_US else manifest.frontier_us - last_us,
        )
        return handed_over(
            before,
            after,
            operator=self.subquery.operator,
            state={w: manifest.operators.get(self.key(w), ()) for w in self._compactors},
            arrived=arrived,
            batch=manifest.batch + 1,
            asked=options.handover,
            site=Site(options.one_host, self._store.files.local),
        )

    def draft(
        self,
        manifest: Manifest,
        cut: Cut,
        mapping: route.Mapping,
        parts: PartWriter | None,
    ) -> Draft:
        """The draft of the next job; finished rewrites of compaction replace their segments."""
        self._state = {
            what: compactor.apply(manifest.operators.get(self.key(what), ()))
            for what, compactor in self._compactors.items()
        }
        job = Job(
            batch=manifest.batch + 1,
            subquery=self._applied(self.subquery),
            splits=splits_of(self.subquery, cut, self._telling, mapping.instances),
            mapping=mapping,
            previous_us=cut.previous_us,
            frontier_us=cut.frontier_us,
            state=self._state,
            store=self._store.handle(),
            held=self._held,
            parts=parts,
            outputs=self._outputs,
            memory=self._memory,
            owner=self._store.owner,
            run=self._run,
            before=None if self._last is None else self._last.name,
            same=self._same(mapping, manifest),
            tables=self._tables.versions(self._table_names),
        )
        self._before = counts = self.counts(manifest.counters)
        if self._last is None:
            self.window_log.begin(self._stored_before(manifest.frontier_us, counts))
        return Draft(job, time_span(self.subquery, cut), counts, cut.newest_us)

    def draft_ahead(self, running: Job, cut: Cut) -> Job | None:
        """The job after the running one, as far as its map tasks need it, with the same mapping.

        None if the map tasks must wait: for rows of other jobs, for state that the running batch
        writes, or for former owners, which the next batch may not have any more.
        """
        prefixes, operator = self.subquery.prefixes, self.subquery.operator
        alone = operator.traits.deals_ahead and not running.mapping.formers
        if not alone or any(isinstance(p.origin, Edge) for p in prefixes):
            return None
        job = replace(
            running,
            batch=running.batch + 1,
            subquery=self._applied(self.subquery),
            splits=splits_of(self.subquery, cut, self._telling, running.mapping.instances),
            previous_us=cut.previous_us,
            frontier_us=cut.frontier_us,
            state={w: s for w, s in running.state.items() if w in operator.traits.dealt_by},
            before=None,
            same=None,
        )
        return Draft(job, time_span(self.subquery, cut)).completed({})

    def _same(self, mapping: route.Mapping, manifest: Manifest) -> frozenset[int] | None:
        """The instances that may go on with their state in memory; None if all may.

        An instance may if it owns exactly the buckets that it owned in the last job.
        """
        if self._last is None:
            return None
        counts = self.counts(manifest.counters)
        before = self._last.mapping.lasting(manifest.frontier_us, counts)
        if mapping.continues(before):
            return None
        if mapping.formers or before.formers:
            return frozenset()
        moved = before.owner_array != mapping.owner_array
        changed = {*before.owner_array[moved], *mapping.owner_array[moved]}
        return frozenset(i for i in range(mapping.instances) if i not in changed)

    def _stored_before(self, frontier_us: int, counts: Mapping[str, int]) -> int:
        """The event time from which on nothing is stored yet.

        Windows that begin at it or later are computed by this run alone.
        """
        state = self.subquery.operator.state
        if not isinstance(state.reach, Reach):
            return MIN_US
        migration = state.migration(frontier_us, self._state, counts)
        return MIN_US if migration is None else migration.until_us

    def committed(self, job: Job, outcomes: Sequence[Outcome]) -> None:
        """Note the job and the outcomes of the newest committed batch."""
        self._last = job
        self.window_log.add(job, outcomes)
        self.change_log.add(self.name, job.batch, outcomes)

    def counted(self, outcomes: Sequence[Outcome]) -> Counter[str]:
        """What a batch adds to the operator's counts, by their names in a manifest."""
        counted, found = self.subquery.operator.traits.counted, Counter[str]()
        for outcome in outcomes:
            found.update({self.key(name): outcome.counts.get(name, 0) for name in counted})
        return found

    def operators(
        self, outcomes: Sequence[Outcome], frontier_us: int, counters: Mapping[str, int]
    ) -> dict[str, tuple[Segment, ...]]:
        """The segments after a batch: the old ones that are still needed, then the new ones."""
        after = {}
        for what, compactor in self._compactors.items():
            written = [s for o in outcomes for s in o.segments.get(what, ())]
            every = [*self._state[what], *written]
            live = set(compactor.live(every, frontier_us, counters.get(self.key(what), 0)))
            kept = (s for s in self._state[what] if s in live)
            after[self.key(what)] = (*kept, *written)
        return after

    def compact(self, manifest: Manifest, runner: JobRunner) -> None:
        """Tell the compactors which segments were committed, and start rewrites that pay."""
        for what, compactor in self._compactors.items():
            segments = manifest.operators.get(self.key(what), ())
            compactor.settle(segments)
            if not manifest.finished and compactor.is_due(segments):
                mapping = self.mapping(manifest)
                since = mapping.formers[-1].until(what) if mapping.formers else MIN_US
                compactor.consider(
                    manifest.batch,
                    segments,
                    manifest.frontier_us,
                    manifest.counters.get(self.key(what), 0),
                    mapping.owners,
                    runner,
                    since,
                )

    def close(self) -> None:
        for compactor in self._compactors.values():
            compactor.close()
