"""What was measured of a subquery, from which it can be said what it does at other rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.model.calibration import Calibration
from tidegate.model.estimator import Estimator
from tidegate.model.operation import Operation
from tidegate.model.steady import SubqueryModel
from tidegate.model.workload import (
    GroupWorkload,
    JoinWorkload,
    TupleWorkload,
    Workload,
    keys_of,
)


@dataclass(frozen=True)
class Passed:
    """Tuples that came to something, and those that it let through."""

    came: int = 0
    went: int = 0

    def with_more(self, came: int, went: int) -> Passed:
        return Passed(self.came + came, self.went + went)

    @property
    def share(self) -> float:
        """The share that goes through; all where nothing came."""
        return self.went / self.came if self.came else 1.0


@dataclass(frozen=True)
class Known:
    """What the batches of one subquery have shown: its costs, and what its inputs became.

    `sides` are the tuples of a join's sides, which filters let through, and `edges` the rows that
    other subqueries put out and those that came to this one.
    """

    name: str
    kind: str
    method: str | None
    estimator: Estimator
    sides: tuple[Passed, Passed] = (Passed(), Passed())
    edges: Passed = Passed()

    def calibration(self) -> Calibration | None:
        """The constants; None where there were too few batches."""
        return self.estimator.estimate()

    def model(self, operation: Operation, feeds: tuple[str, ...], last: bool) -> SubqueryModel:
        """What it will do, fed by these; `last` where its rows are output of the query."""
        return SubqueryModel(
            name=self.name,
            feeds=feeds,
            workload=self._workload(operation),
            estimator=self.estimator,
            taken=self.edges.share,
            last=last,
        )

    def _workload(self, operation: Operation) -> Workload:
        samples, ratio = self.estimator.samples, self.estimator.ratio
        outputs = [s.outputs for s in samples]
        if operation.windows:
            pairs = [s.comparisons for s in samples]
            return JoinWorkload(
                windows=operation.windows,
                sides=operation.sides,
                passed=(self.sides[0].share, self.sides[1].share),
                compared=ratio([s.compared for s in samples], pairs).value,
                sigma=ratio(outputs, pairs).value,
            )
        if operation.slide_s:
            timed = [s for s in samples if s.event_s is not None]
            seconds = sum(s.event_s or 0.0 for s in timed)
            in_range = operation.range_s / seconds if seconds else 0.0
            tuples = sum(s.tuples for s in timed) * in_range
            in_slide = operation.slide_s / seconds if seconds else 0.0
            keys = keys_of(tuples, sum(s.outputs for s in timed) * in_slide)
            return GroupWorkload(operation.range_s, operation.slide_s, keys)
        return TupleWorkload(ratio(outputs, [s.tuples for s in samples]).value)

    def recorded(self) -> dict[str, Any]:
        """As JSON has it; the constants are for people and other programs."""
        found = self.calibration()
        return {
            "name": self.name,
            "kind": self.kind,
            "method": self.method,
            "constants": None if found is None else found.as_dict(),
            "sides": [[p.came, p.went] for p in self.sides],
            "edges": [self.edges.came, self.edges.went],
            "estimator": self.estimator.recorded(),
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> Known:
        """What `recorded` gave."""
        left, right = (Passed(*pair) for pair in recorded["sides"])
        return Known(
            name=recorded["name"],
            kind=recorded["kind"],
            method=recorded["method"],
            estimator=Estimator.restored(recorded["estimator"]),
            sides=(left, right),
            edges=Passed(*recorded["edges"]),
        )

    def with_sides(self, came: tuple[int, int], went: tuple[int, ...]) -> Known:
        """With the tuples of a batch that came to the sides of a join, and that went in."""
        if not went:
            return self
        left, right = (p.with_more(c, w) for p, c, w in zip(self.sides, came, went, strict=True))
        return replace(self, sides=(left, right))
