"""Holds the subqueries of a running query, drafts their jobs and takes requests for switches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tidegate.batch import MIN_US
from tidegate.clock import Clock, utc_now
from tidegate.driver.budget import BudgetGuard
from tidegate.driver.checkpoint.commit import epoch_of
from tidegate.driver.checkpoint.replay import Replay
from tidegate.driver.migration import loaded_bytes, reach_of
from tidegate.driver.options import RunOptions, one_number
from tidegate.driver.outlet import Outlets
from tidegate.driver.report.change_log import Changes
from tidegate.driver.report.observe import MeasuredBatch
from tidegate.driver.report.source_watch import SourceBatch, SubqueryArrivals, given_to
from tidegate.driver.report.window_log import WindowDigest
from tidegate.driver.shedding import Shedding
from tidegate.driver.standby import StandbyPartitioners
from tidegate.driver.subquery import RunningSubquery
from tidegate.driver.tables import Tables
from tidegate.elastic import handover
from tidegate.elastic.budget.claim import claim_of
from tidegate.elastic.load import RecentLoad
from tidegate.elastic.request import Request, Scale
from tidegate.elastic.switchboard import Switchboard, Taken, WaitingRequest
from tidegate.errors import OptionError, near
from tidegate.execute.job import Job
from tidegate.execute.runner import Draft, JobRunner, Outcomes
from tidegate.execute.splits import telling_inputs
from tidegate.gate.backlog import Backlog
from tidegate.gate.cut import Cut
from tidegate.model.observation import SplitSeen
from tidegate.plan.physical import QUERY_CLOUD, Plan, Subquery
from tidegate.route import mapping as route
from tidegate.state.epoch import time_of
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_log = logging.getLogger(__name__)


class Subqueries:
    """The subqueries in the order of the plan, with their mappings and state.

    The loop owns them; other threads may call `ask`, `waiting`, `load`, `windows` and `changes`.
    """

    def __init__(self, plan: Plan, store: Store, options: RunOptions, tables: Tables) -> None:
        self._plan = plan
        self._options = options.called(plan.names)
        self._local = store.files.local
        self.shedding = Shedding(plan)
        """The share that each subquery sheds, and the requests to change it."""
        self.standby = StandbyPartitioners(plan)
        """The partitioners that may split keys, and whether they do now."""
        self._all = [
            RunningSubquery(plan, number, store, telling, tables, self._applied, options.memory)
            for number, telling in enumerate(telling_inputs(plan))
        ]
        self._streams = [stream.name for stream in plan.streams]
        self._board = Switchboard()
        self.budget = BudgetGuard(options.budget, len(self._all), shared=self.shared)
        self._since: dict[str, int] = {}
        """By subquery, the newest batch that took a request from a user or a policy."""
        self._answered: set[str] = set()
        """The subqueries that took such a request in this run."""
        options.memory.take()

    def _applied(self, subquery: Subquery) -> Subquery:
        return self.standby.applied(self.shedding.applied(subquery))

    def __iter__(self) -> Iterator[RunningSubquery]:
        return iter(self._all)

    @property
    def names(self) -> list[str]:
        return [s.name for s in self._all]

    @property
    def shared(self) -> bool:
        """Whether several subqueries run on the same instances."""
        return self._plan.strategy == QUERY_CLOUD and len(self._all) > 1

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
        mapping = self._options.first_mapping()
        return Manifest(-1, dict.fromkeys(self._plan.names, route.recorded(mapping)), MIN_US)

    def enter(self, manifest: Manifest, *, again: bool = False) -> None:
        """Restore mappings, shedding and past requests from a manifest, before the first batch.

        With `again` the first batch of this run is the manifest's own batch once more.
        """
        standing = self._standing(manifest)
        self._board.enter(standing)
        self.shedding.enter(manifest)
        self._since = {
            self._plan.names[e["subquery"]]: e["batch"]
            for e in manifest.epochs
            if e["subquery"] in self._plan.names and not e.get("by", "--").startswith("--")
        }
        self._enter_budget(manifest, standing, again)

    def _enter_budget(
        self, manifest: Manifest, standing: Mapping[str, route.Mapping], again: bool
    ) -> None:
        options, batch = self._options, manifest.batch + 1
        counts = {name: mapping.instances for name, mapping in standing.items()}
        by = "--mapping" if options.mapping is not None and not again else None
        for name in () if again else counts:
            due = options.due_at(batch, name, self._since.get(name))
            if due is not None:
                by, counts[name] = due
        self.budget.enter(counts, claim_of(options.policy), by=by, again=again)

    def ask(self, request: Request, at: float) -> dict[str, Taken]:
        """Request a change of mapping from the next batch on; called by any thread.

        `at` is the clock's time. Returns, by subquery, the switch as it would be now. Raises an
        OptionError and requests nothing if any subquery cannot make the change.
        """
        names = self._named(request)
        asked = WaitingRequest(request, at, time_of(utc_now()))
        return self._board.ask(asked, names, self.loads, partial(self.budget.allow, request))

    def waiting(self) -> dict[str, WaitingRequest]:
        """By subquery, the request that waits for the next batch."""
        return self._board.waiting()

    def loads(self, subquery: str) -> Sequence[float]:
        """The load of each bucket of a subquery in recent batches; all equal before the first."""
        load = self.load().get(subquery)
        if load is None or not load.cpu_s.any():
            return [1.0] * self._options.buckets
        shares: list[float] = load.buckets.tolist()
        return shares

    def _named(self, request: Request) -> list[str]:
        """The subqueries that a request names; an OptionError for an unknown name."""
        if request.subquery is None:
            return self.names
        where = str(request.change).partition(" ")[0]
        name = self._plan.names.get(request.subquery, request.subquery)
        if name not in self.names:
            raise OptionError(
                where, "must name a subquery of the query", name, near(name, self.names)
            )
        if self.shared:
            raise one_number(where, name)
        return [name]

    def _standing(self, manifest: Manifest) -> dict[str, route.Mapping]:
        """The mappings that the next batch begins with if nobody asks for others."""
        return {s.name: self._mapping(s, manifest) for s in self._all}

    def _mapping(self, subquery: RunningSubquery, manifest: Manifest) -> route.Mapping:
        if manifest.batch >= 0:
            return subquery.going_on(manifest)
        return self._options.first_mapping(subquery.name)

    def _scheduled(
        self, batch: int, standing: Mapping[str, route.Mapping], at: float
    ) -> dict[str, WaitingRequest]:
        """The requests that `--switch`, `--instances` and `--mapping` make for a batch."""
        found = {}
        for name, mapping in standing.items():
            answered = name in self._answered
            due = self._options.due_at(batch, name, self._since.get(name), answered)
            first = None if answered else self._options.mapping
            if due is not None and due[1] != mapping.instances:
                request = Request(Scale(due[1]), name, by=due[0])
                found[name] = WaitingRequest(request, at, time_of(utc_now()))
            elif due is None and first is not None and first.after(mapping, ()) is not mapping:
                request = Request(first, name, by="--mapping")
                found[name] = WaitingRequest(request, at, time_of(utc_now()))
        return found

    def drafts(
        self,
        manifest: Manifest,
        cut: Cut,
        outlets: Outlets,
        clock: Clock,
        replay: Replay | None = None,
    ) -> tuple[list[Draft], list[Mapping[str, Any]]]:
        """The jobs of the next batch, and the history of epochs with those that begin with it.

        A batch that runs again gets the mappings it had; new requests wait.
        """
        batch = manifest.batch + 1
        self.shedding.begin(manifest, cut, replay)
        if replay is not None:
            had = {s.name: s.mapping(replay.after) for s in self._all}
            taken = self._board.repeat(batch, had)
            self.budget.begin(taken, clock.now())  # as many as it was admitted with
            begun = [e for e in replay.after.epochs if e["batch"] == batch]
        else:
            taken, begun = self._switched(manifest, batch, clock)
        drafts = [
            s.draft(manifest, cut, taken[s.name].mapping, outlets.for_tasks(s.target))
            for s in self._all
        ]
        return drafts, [*manifest.epochs, *begun]

    def drafts_ahead(self, running: Sequence[Draft], cut: Cut) -> list[Job]:
        """The jobs whose map tasks may run now for the next batch, assuming that nobody switches.

        If somebody does, the draft of that batch differs from these jobs and its map tasks run
        again.
        """
        pairs = zip(self._all, running, strict=True)
        found = (subquery.draft_ahead(draft.job, cut) for subquery, draft in pairs)
        return [job for job in found if job is not None]

    def _switched(
        self, manifest: Manifest, batch: int, clock: Clock
    ) -> tuple[dict[str, Taken], list[Mapping[str, Any]]]:
        """The mapping of each subquery in a batch, and the entries of epochs that begin with it."""
        started, standing = clock.now(), self._standing(manifest)
        scheduled = self._scheduled(batch, standing, started)
        within = partial(self.budget.begin, at=started)
        taken = dict(self._board.begin(batch, standing, scheduled, self.loads, within))
        handed = self._handed_over(manifest, taken)
        now = clock.now()
        switch_ms = round((now - started) * 1e3, 4)
        for asked, error in self._board.refused:
            _log.warning("%s, asked by %s: %s", asked.request.change, asked.request.by, error)
        for name, of in taken.items():
            if of.asked is not None and not of.asked.request.by.startswith("--"):
                self._since[name] = batch
                self._answered.add(name)
        begun: list[Mapping[str, Any]] = [
            epoch_of(s.subquery.key, batch, taken[s.name], switch_ms, now) | handed.get(s.name, {})
            for s in self._all
            if batch == 0 or taken[s.name].mapping is not taken[s.name].before
        ]
        return taken, begun

    def _handed_over(
        self, manifest: Manifest, taken: dict[str, Taken]
    ) -> dict[str, dict[str, Any]]:
        """Choose the handover of each new mapping and put it into `taken`.

        Returns what the entries of the epochs record of it, by subquery.
        """
        facts = {}
        for s in self._all:
            of = taken[s.name]
            if manifest.batch >= 0 and of.mapping is not of.before:
                mapping, facts[s.name] = s.handed_over(
                    manifest, of.before, of.mapping, self._options
                )
                taken[s.name] = replace(of, mapping=mapping)
        return facts

    def with_loaded(
        self,
        epochs: Sequence[Mapping[str, Any]],
        manifest: Manifest,
        jobs: Sequence[Job],
        outcomes: Outcomes,
    ) -> list[Mapping[str, Any]]:
        """The epochs with the bytes that new owners loaded in the batch after a manifest.

        Measured on a remote store only. On local files the entry keeps the estimate that it has.
        """
        if self._local:
            return list(epochs)
        triples = zip(self._all, jobs, outcomes, strict=True)
        ran = {subquery.subquery.key: (subquery, job, of) for subquery, job, of in triples}

        def completed(epoch: Mapping[str, Any]) -> Mapping[str, Any]:
            if epoch["batch"] != manifest.batch + 1 or epoch.get("handover") != handover.STATE:
                return epoch
            subquery, job, found = ran[epoch["subquery"]]
            moved = loaded_bytes(subquery.mapping(manifest), job, found)
            return {**epoch, "bytes_moved": moved}

        return [completed(epoch) for epoch in epochs]

    def committed(self, jobs: Sequence[Job], outcomes: Outcomes) -> None:
        """Note the jobs and the outcomes of the newest committed batch."""
        self.budget.end()
        for subquery, job, found in zip(self._all, jobs, outcomes, strict=True):
            subquery.committed(job, found)

    def measured(
        self,
        jobs: Sequence[Job],
        outcomes: Outcomes,
        seconds: float,
        period_s: float,
        between_s: float,
        brought: Sequence[SourceBatch],
        backlog: Backlog | None,
    ) -> list[MeasuredBatch]:
        """The measured load of each subquery in the newest committed batch."""
        found = []
        for subquery, job, of in zip(self._all, jobs, outcomes, strict=True):
            given = given_to(subquery.subquery, self._plan, outcomes)
            arriving = SubqueryArrivals(self._streams, brought, given)
            measured = MeasuredBatch.of(job, of, (seconds, period_s, between_s), arriving, backlog)
            subquery.load_log.add(measured)
            found.append(measured)
        return found

    def load(self) -> dict[str, RecentLoad]:
        """The load of each subquery over recent batches of this run; empty before the first."""
        found = ((s.name, s.load_log.load()) for s in self._all)
        return {name: load for name, load in found if load is not None}

    def windows(self) -> dict[str, WindowDigest]:
        """The figures of each subquery's windows in this run, if its instances reported any."""
        found = ((s.name, s.window_log.digest()) for s in self._all)
        return {name: digest for name, digest in found if digest is not None}

    def changes(self) -> Changes:
        """The changes that each subquery's operator made on its own in this run."""
        found = ((s.name, s.change_log.newest()) for s in self._all)
        return {name: newest for name, newest in found if newest}

    def splits(self) -> dict[str, SplitSeen | None]:
        """What a policy may know of each subquery's partitioner, by name."""
        return {s.name: self.standby.seen(s.subquery.key, s.change_log.newest) for s in self._all}

    def state_bytes(self, manifest: Manifest) -> dict[str, int]:
        """The bytes of state of each subquery, by name; costs a look at each segment."""
        found = dict.fromkeys(self.names, 0)
        for key, segments in manifest.operators.items():
            found[self._plan.names[key.partition("/")[0]]] += sum(s.bytes for s in segments)
        return found

    def compact(self, manifest: Manifest, runner: JobRunner) -> None:
        """Start the compactions that pay; called after a commit."""
        for subquery in self._all:
            subquery.compact(manifest, runner)

    def close(self) -> None:
        self.budget.leave()
        for subquery in self._all:
            subquery.close()
