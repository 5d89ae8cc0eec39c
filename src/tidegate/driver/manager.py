"""Asks the policy after each batch, and passes its requests to the next batch."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tidegate.elastic.budget.budget import NO_BUDGET, QueryBudget
from tidegate.elastic.budget.claim import claim_of
from tidegate.elastic.budget.instance_need import AskedInstances
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Decision, Explaining, Policy, Remarking
from tidegate.elastic.request import Request
from tidegate.elastic.share import ShareRequest
from tidegate.errors import OptionError, TidegateError
from tidegate.model.observation import BatchCadence, InstanceLoad, Observation
from tidegate.model.operation import Operation

_log = logging.getLogger(__name__)

_SEEN_BATCHES = 2
"""A policy is asked for its remark after so many batches: in the first, rates are unknown."""


class Manager:
    """Asks a policy after every batch, passes its requests on, and keeps its memory.

    - `waiting` returns the subqueries for which a request waits.
    - `slots` returns how many instances can run at once, None if unknown; it is called once.
    - With `shared`, all subqueries run on the same instances: the policy sees one subquery with the
      load of all, and its requests are for all.
    - `shed`, `cadence` and `split` take its other requests: another share to shed, other batches,
      and whether keys may be split.
    - `budget` is the query's part of the session's budget.

    Owned by the loop; any thread may call `use`.
    """

    def __init__(
        self,
        policy: Policy,
        ask: Callable[[Request], object],
        waiting: Callable[[], Collection[str]],
        slots: Callable[[], int | None],
        shared: bool = False,
        shed: Callable[[ShareRequest], object] | None = None,
        budget: QueryBudget = NO_BUDGET,
        cadence: Callable[[BatchCadence | None], object] | None = None,
        split: Callable[[bool], object] | None = None,
    ) -> None:
        self._decide_by(policy)
        self._shed = shed
        self._cadence = cadence
        self._split = split
        self._budget = budget
        self._asked = AskedInstances()
        self._ask = ask
        self._waiting = waiting
        self._find_slots = slots
        self._shared = shared
        self._remembers = policy.name
        self._memory: Mapping[str, Any] = {}
        self._batches = 0
        self.failure: str | None = None
        """The policy's first failure in this run."""
        self.remark: str | None = None
        """The policy's remark about the query, if any."""

    def _decide_by(self, policy: Policy) -> None:
        self._policy = policy
        # To ask whether an object has a protocol's methods takes long, and each batch needs it.
        self._explains = policy if isinstance(policy, Explaining) else None

    def status(self) -> dict[str, Any]:
        """The policy's name, its failure and its remark, as plain data."""
        told = {"name": self._policy.name, "failure": self.failure, "remark": self.remark}
        return {**told, **(self.explained() or {})}

    def within(self) -> dict[str, Any] | None:
        """What the query wants and gets of the session's budget; None without a budget."""
        return self._budget.told()

    def explained(self) -> dict[str, Any] | None:
        """The policy's aim and its decisions; None if it does not explain itself."""
        policy = self._explains
        if policy is None:
            return None
        return policy.told(self._memory if policy.name == self._remembers else {})

    @property
    def decides(self) -> bool:
        """Whether the policy decides anything, so that it must see batches."""
        return not isinstance(self._policy, Fixed)

    @property
    def sheds(self) -> bool:
        """Whether the policy chooses the share to shed, in place of the backlog rule."""
        return self._explains is not None and self._explains.sheds

    def use(self, policy: Policy) -> None:
        """Let another policy decide from the next batch on.

        Batches and partitioners are as the user asked for them again: the other policy may know
        nothing of what this one has changed.
        """
        self._decide_by(policy)
        if self._cadence is not None:
            self._cadence(None)
        if self._split is not None:
            self._split(False)
        self.failure = self.remark = None
        self._batches, self._asked = 0, AskedInstances()
        self._budget.turn(claim_of(policy))

    def enter(self, recorded: Mapping[str, Any]) -> None:
        """Restore the memory in a manifest; it counts for a policy of the same name."""
        if recorded:
            self._remembers, self._memory = recorded["name"], recorded["memory"]

    def recorded(self) -> dict[str, Any]:
        """The policy's part of the next manifest."""
        name = self._policy.name
        if not self.decides:
            return {}
        return {"name": name, "memory": self._memory if name == self._remembers else {}}

    def after_batch(self, observed: Sequence[Observation]) -> None:
        """Let the policy decide. It is the user's code: whatever it raises, the query goes on."""
        policy = self._policy
        if not observed:
            return
        if policy.name != self._remembers:
            self._remembers, self._memory = policy.name, {}
        slots, limit = self.slots, self._budget.limit()
        seen = [replace(one, slots=slots, limit=limit) for one in observed]
        try:
            shown = [together(seen)] if self._shared else seen
            decision = policy.decide(shown, self._memory)
            requests, memory = _checked(decision)
            if limit is not None:
                self._asked = self._asked.after(shown, decision)
                self._budget.want(self._asked.instances)
            if decision.share is not None and self._shed is not None and seen[0].shed is not None:
                self._shed(replace(decision.share, by=f"policy {policy.name}"))
            for request in requests:
                signed = self._signed(request, policy.name)
                if not self._is_forestalled(signed):
                    self._ask(signed)
            if decision.cadence is not None and self._cadence is not None:
                self._cadence(decision.cadence)
            if decision.splits is not None and self._split is not None:
                self._split(decision.splits)
            self._memory = memory
            self._batches += 1
            if self._batches == _SEEN_BATCHES and isinstance(policy, Remarking):
                self._say(policy, seen)
        except Exception as error:
            self._note(policy.name, observed[0].batch, error)

    @cached_property
    def slots(self) -> int | None:
        """How many instances run at once; None where that is not known."""
        return self._find_slots()

    def _is_forestalled(self, request: Request) -> bool:
        """Whether a request already waits, for example a user's, which goes before the policy's."""
        waiting = self._waiting()
        return bool(waiting) if request.subquery is None else request.subquery in waiting

    def _signed(self, request: Request, name: str) -> Request:
        """The request with the policy as the asker, whatever the policy wrote there."""
        named = None if self._shared else request.subquery
        return replace(request, subquery=named, by=f"policy {name}")

    def _say(self, policy: Remarking, observed: Sequence[Observation]) -> None:
        self.remark = policy.remark(observed)
        if self.remark is not None:
            _log.warning("policy %s: %s.", policy.name, self.remark)

    def _note(self, name: str, batch: int, error: Exception) -> None:
        """Log the first failure only: a policy may fail after every batch of an endless run."""
        said = str(error) if isinstance(error, TidegateError) else _told(error)
        if self.failure is None:
            own = not isinstance(error, TidegateError)
            _log.error(
                "policy %s: failed after batch %d: %s The query goes on with the instances it has. "
                "The policy is asked again after every batch; further failures are not logged.",
                name,
                batch,
                said,
                exc_info=error if own else None,
            )
            self.failure = said


def together(observed: Sequence[Observation]) -> Observation:
    """Subqueries that share their instances, as one subquery with the load of all."""
    first = observed[0]
    rows = zip(*(one.instances for one in observed), strict=True)
    return replace(
        first,
        subquery=", ".join(one.subquery for one in observed),
        instances=tuple(
            InstanceLoad(
                cpu_s=sum(load.cpu_s for load in of),
                tuples=sum(load.tuples for load in of),
                comparisons=sum(load.comparisons for load in of),
                outputs=sum(load.outputs for load in of),
                compared=sum(load.compared for load in of),
            )
            for of in rows
        ),
        buckets=np.sum([one.buckets for one in observed], axis=0),
        inputs=tuple(load for one in observed for load in one.inputs),
        sides=(),
        operation=Operation("several"),
        taken=sum(one.taken for one in observed),
        map_s=sum(one.map_s for one in observed),
        others_s=0.0,
        split=next((one.split for one in observed if one.split is not None), None),
        state_bytes=sum(one.state_bytes for one in observed),
    )


def _checked(decision: object) -> tuple[list[Request], Mapping[str, Any]]:
    """The requests of a decision, and its memory after a trip through JSON.

    The memory goes into the manifest. An OptionError here is better than a manifest that cannot be
    written, which would end the query.
    """
    if not isinstance(decision, Decision):
        raise OptionError("decide", "must return a Decision", repr(decision))
    requests: list[Any] = list(decision.requests)
    for request in requests:
        if not isinstance(request, Request):
            remedy = "Write for example Request(Scale(4))."
            raise OptionError("decide", "must ask by a Request", repr(request), remedy)
    wanted: object = decision.wanted
    if wanted is not None and (type(wanted) is not int or wanted < 1):
        raise OptionError("decide", "wanted must be a number of instances", repr(wanted))
    _check_cadence(decision.cadence)
    try:
        memory: Mapping[str, Any] = json.loads(json.dumps(dict(decision.memory), allow_nan=False))
    except (TypeError, ValueError) as error:
        requirement = "memory must be a dict of plain data, as JSON has it"
        raise OptionError("decide", requirement, str(error)) from error
    return requests, memory


def _check_cadence(cadence: object) -> None:
    """Refuse a cadence that batches cannot have."""
    if cadence is None:
        return
    if not isinstance(cadence, BatchCadence):
        raise OptionError("decide", "must ask for a BatchCadence", repr(cadence))
    rows: object = cadence.rows
    if not 0 <= cadence.trigger_s < float("inf") or (
        rows is not None and (type(rows) is not int or rows < 1)
    ):
        requirement = "a cadence needs a trigger of 0 seconds or more, and at least one row"
        raise OptionError("decide", requirement, repr(cadence))


def _told(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}{f': {text}' if text else ''}."
