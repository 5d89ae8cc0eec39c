"""What `tidegate calibrate` measured of a query: its file, and the model that follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.errors import OptionError
from tidegate.model.cost.calibration import Calibration
from tidegate.model.cost.estimator import Estimator
from tidegate.model.operation import Operation
from tidegate.model.sizing.steady import SubqueryModel
from tidegate.model.sizing.workload import (
    GroupWorkload,
    JoinWorkload,
    OperatorWorkload,
    TupleWorkload,
    keys_of,
)
from tidegate.storage import disk

FORMAT = 1
"""The number of the file's format."""

_REMEDY = "`tidegate calibrate QUERY.sql --json FILE` writes one."


@dataclass(frozen=True)
class PassShare:
    """Tuples that came to something, and those that it let through."""

    came: int = 0
    went: int = 0

    def with_more(self, came: int, went: int) -> PassShare:
        return PassShare(self.came + came, self.went + went)

    @property
    def share(self) -> float:
        """The share that goes through; all where nothing came."""
        return self.went / self.came if self.came else 1.0


@dataclass(frozen=True)
class MeasuredSubquery:
    """What the batches of one subquery have shown: its costs, and what its inputs became.

    `sides` are the tuples of a join's sides, which filters let through, and `edges` the rows that
    other subqueries put out and those that came to this one.
    """

    name: str
    kind: str
    method: str | None
    estimator: Estimator
    sides: tuple[PassShare, PassShare] = (PassShare(), PassShare())
    edges: PassShare = PassShare()

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

    def _workload(self, operation: Operation) -> OperatorWorkload:
        known = self.estimator
        if operation.windows:
            return JoinWorkload(
                windows=operation.windows,
                sides=operation.sides,
                passed=(self.sides[0].share, self.sides[1].share),
                compared=known.compared.value,
                sigma=known.sigma.value,
            )
        if operation.slide_s:
            timed = [s for s in known.samples if s.event_s is not None]
            seconds = sum(s.event_s or 0.0 for s in timed)
            in_range = operation.range_s / seconds if seconds else 0.0
            tuples = sum(s.tuples for s in timed) * in_range
            in_slide = operation.slide_s / seconds if seconds else 0.0
            keys = keys_of(tuples, sum(s.outputs for s in timed) * in_slide)
            return GroupWorkload(operation.range_s, operation.slide_s, keys)
        return TupleWorkload(known.outputs.value)

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
    def restored(recorded: Mapping[str, Any]) -> MeasuredSubquery:
        """What `recorded` gave."""
        left, right = (PassShare(*pair) for pair in recorded["sides"])
        return MeasuredSubquery(
            name=recorded["name"],
            kind=recorded["kind"],
            method=recorded["method"],
            estimator=Estimator.restored(recorded["estimator"]),
            sides=(left, right),
            edges=PassShare(*recorded["edges"]),
        )

    def with_sides(self, came: tuple[int, int], went: tuple[int, ...]) -> MeasuredSubquery:
        """With the tuples of a batch that came to the sides of a join, and that went in."""
        if not went:
            return self
        left, right = (p.with_more(c, w) for p, c, w in zip(self.sides, came, went, strict=True))
        return replace(self, sides=(left, right))


@dataclass(frozen=True)
class QueryCalibration:
    """What was measured of the subqueries of a query, with how many rows and instances.

    `fingerprint` names the meaning of the query, `slots` is how many instances ran at once, None
    where all did, `beside` knows what whole batches took beside the work of instances, and `facts`
    are the machine, versions and windows, for people.
    """

    fingerprint: str
    rows: int
    batches: int
    instances: int
    slots: int | None
    subqueries: tuple[MeasuredSubquery, ...]
    beside: Estimator
    facts: Mapping[str, Any]

    def recorded(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "calibration": FORMAT,
            "facts": dict(self.facts),
            "rows": self.rows,
            "batches": self.batches,
            "instances": self.instances,
            "slots": self.slots,
            "fingerprint": self.fingerprint,
            "subqueries": [of.recorded() for of in self.subqueries],
            "beside": self.beside.recorded(),
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> QueryCalibration:
        """What `recorded` gave."""
        plain = ("fingerprint", "rows", "batches", "instances", "slots", "facts")
        return QueryCalibration(
            **{name: recorded[name] for name in plain},
            subqueries=tuple(MeasuredSubquery.restored(of) for of in recorded["subqueries"]),
            beside=Estimator.restored(recorded["beside"]),
        )

    def join(self, where: str) -> Calibration:
        """What is known of the only join of the query, for the model of joins."""
        joins = [of for of in self.subqueries if of.kind == "join"]
        found = joins[0].calibration() if len(joins) == 1 else None
        if found is None:
            got = ", ".join(of.name for of in joins) or "one without"
            raise OptionError(where, "must be of a query with one join that took tuples", got)
        return found


def read_calibration(path: str, where: str = "--calibration") -> QueryCalibration:
    """A file that `tidegate calibrate` has written."""
    try:
        with disk.current().open(path) as file:
            recorded = json.load(file)
    except FileNotFoundError:
        raise OptionError(where, "must be a calibration", f"no such file {path}", _REMEDY) from None
    except OSError as error:
        got = f"{path}: {error.strerror or error}"
        raise OptionError(where, "must be a calibration", got, _REMEDY) from None
    except ValueError:
        raise OptionError(
            where, "must be a calibration", f"{path}, which is not JSON", _REMEDY
        ) from None
    written = recorded.get("calibration") if isinstance(recorded, dict) else None
    if written is None:
        raise OptionError(where, "must be a calibration", f"{path}, which is other JSON", _REMEDY)
    if written != FORMAT:
        got = f"{path} with the format {written}"
        raise OptionError(where, f"must have the format {FORMAT}", got, _REMEDY)
    try:
        return QueryCalibration.restored(recorded)
    except (KeyError, TypeError, ValueError) as error:
        got = f"{path}, where something is missing or damaged ({error})"
        raise OptionError(where, "must be a calibration", got, _REMEDY) from None
