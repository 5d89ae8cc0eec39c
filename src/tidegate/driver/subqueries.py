"""All subqueries of a query as they run, between the loop and what each batch asks of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegate.batch import MIN_US
from tidegate.clock import Clock
from tidegate.driver.handing import reach_of
from tidegate.driver.options import RunOptions, one_number
from tidegate.driver.outlet import Outlets
from tidegate.driver.replay import Replay
from tidegate.driver.subquery import RunningSubquery
from tidegate.elastic import handover
from tidegate.errors import OptionError, near
from tidegate.execute.executor import Draft, Executor, Outcomes
from tidegate.execute.job import Job
from tidegate.execute.splits import telling_inputs
from tidegate.gate.intake import Cut
from tidegate.memory import MEMORY
from tidegate.plan.physical import QUERY_CLOUD, Plan
from tidegate.route.mapping import even, recorded, switched
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store


class Subqueries:
    """The subqueries in the order of the plan, with their mappings and the state they keep."""

    def __init__(self, plan: Plan, store: Store, options: RunOptions) -> None:
        self._plan = plan
        self._options = options.called(plan.names)
        self._local = store.files.local
        self._all = [
            RunningSubquery(plan, number, store, telling, options.memory_bytes)
            for number, telling in enumerate(telling_inputs(plan))
        ]
        MEMORY.resize(options.memory_bytes)

    def __iter__(self) -> Iterator[RunningSubquery]:
        return iter(self._all)

    @property
    def names(self) -> list[str]:
        return [s.name for s in self._all]

    def check_options(self) -> None:
        """Refuse options for subqueries that the query does not have."""
        shared = self._plan.strategy == QUERY_CLOUD
        self._options.check_subqueries(self.names, shared=shared)
        reaches = {s.name: reach_of(s.subquery.operator) for s in self._all}
        handover.check(
            self._options.handover,
            handover.Site(self._options.one_host, self._local),
            {name: reach for name, reach in reaches.items() if reach is not None},
        )

    def first_manifest(self) -> Manifest:
        """The state before the first batch."""
        mapping = even(self._options.buckets, self._options.first_instances)
        return Manifest(-1, dict.fromkeys(self._plan.names, recorded(mapping)), MIN_US)

    def scale(self, manifest: Manifest, instances: int, subquery: str | None) -> None:
        """Ask for another number of instances from the next batch on, for one subquery or all."""
        names = self.names
        subquery = None if subquery is None else self._plan.names.get(subquery, subquery)
        if subquery is not None and subquery not in names:
            raise OptionError(
                "scale", "must name a subquery of the query", subquery, near(subquery, names)
            )
        if subquery is not None and self._plan.strategy == QUERY_CLOUD and len(names) > 1:
            raise one_number("scale", subquery)
        for running in self._all:
            if subquery in (None, running.name):
                switched(running.mapping(manifest), instances)
                running.asked = instances

    def drafts(
        self,
        manifest: Manifest,
        cut: Cut,
        outlets: Outlets,
        clock: Clock,
        replay: Replay | None = None,
    ) -> tuple[list[Draft], list[Mapping[str, Any]]]:
        """What the next batch asks of the tasks, and the history of mappings with its epochs.

        One that runs again has the mappings it had, whatever is asked for now.
        """
        batch, drafts = manifest.batch + 1, []
        epochs: list[Mapping[str, Any]] = list(manifest.epochs)
        for subquery in self._all:
            if replay is not None:
                mapping = subquery.mapping(replay.after)
            else:
                mapping, epoch = subquery.switched(manifest, batch, self._options, clock)
                epochs += [] if epoch is None else [epoch]
            parts = outlets.for_tasks(subquery.target)
            drafts.append(subquery.draft(manifest, cut, mapping, parts))
        if replay is not None:
            epochs += [e for e in replay.after.epochs if e["batch"] == batch]
        return drafts, epochs

    def measured(
        self, epochs: Sequence[Mapping[str, Any]], outcomes: Outcomes, batch: int
    ) -> list[Mapping[str, Any]]:
        """The history of mappings with what instances have loaded for the epochs of a batch.

        That is known where the store is remote; of files of a host it is about what they hold.
        """
        if self._local:
            return list(epochs)
        pairs = zip(self._all, outcomes, strict=True)
        loaded = {s.subquery.key: sum(o.counts["fetched_bytes"] for o in f) for s, f in pairs}
        return [
            {**e, "bytes_moved": loaded[e["subquery"]]}
            if e["batch"] == batch and e.get("handover") == handover.STATE
            else e
            for e in epochs
        ]

    def committed(self, jobs: Sequence[Job]) -> None:
        """The newest batch that counts had these jobs."""
        for subquery, job in zip(self._all, jobs, strict=True):
            subquery.committed(job)

    def compact(self, manifest: Manifest, executor: Executor) -> None:
        """After a commit: start what rewriting is worth it."""
        for subquery in self._all:
            subquery.compact(manifest, executor)

    def close(self) -> None:
        for subquery in self._all:
            subquery.close()
