"""Runs the first rows of a query in batches of several sizes, to measure the cost of subqueries.

With one size, the fixed cost of a batch could not be told from the cost of its tuples.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate.clock import utc_now
from tidegate.cores import cores
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.sample import whole
from tidegate.model.observation import Observation
from tidegate.model.sizing.calibration_file import MeasuredSubquery, QueryCalibration
from tidegate.model.sizing.steady import QueryModel
from tidegate.plan.physical import Edge, Plan, Subquery
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.sink.null_sink import NothingSink
from tidegate.version import __version__

DEFAULT_ROWS = 200_000

_SIZES = (16, 256, 1, 64, 4)
"""Batch sizes of a round, in units of rows; large and small alternate."""

_ROUNDS = 7
_WARM = 3
"""Warm-up batches, which are not counted: they load and compile the query's code."""

_LEAST_BATCHES = 10
"""The fewest batches that give a usable estimate."""

_MOST_S = 30.0
"""No further batch starts after this time, if there are enough."""


def check_calibration(calibration: QueryCalibration, plan: Plan, where: str) -> None:
    """Raises if the calibration belongs to another query or plan."""
    remedy = "Make one with `tidegate calibrate`, with the same options."
    if calibration.fingerprint != plan.fingerprint:
        got = f"that of {calibration.facts.get('query') or 'another'}"
        raise OptionError(where, "must be a calibration of this query", got, remedy)
    planned = [(s.name, s.operator.operation.method) for s in plan.subqueries]
    measured = [(s.name, s.method) for s in calibration.subqueries]
    if planned != measured:
        requirement = f"must be a calibration of this plan ({_methods(planned)})"
        raise OptionError(where, requirement, _methods(measured), remedy)


def model_of(calibration: QueryCalibration, plan: Plan, slots: int | None) -> QueryModel:
    """The cost model of a query; at most `slots` instances run at once."""
    known = {of.name: of for of in calibration.subqueries}
    last = _last(plan)
    return QueryModel(
        streams={stream.name: max(len(stream.uris), 1) for stream in plan.streams},
        subqueries=tuple(
            known[s.name].model(s.operator.operation, _feeds(plan, s), s.name in last)
            for s in plan.subqueries
        ),
        beside=calibration.beside,
        slots=slots,
    )


def calibrate(
    plan: Plan,
    place: Place,
    rows: int = DEFAULT_ROWS,
    instances: int | None = None,
    title: str = "",
) -> QueryCalibration:
    """Measure the first `rows` of all streams together, where the query is to run; keeps no state.

    If the input has clearly fewer rows, it is run again in smaller batches.
    """
    run = _run(plan, place, rows, instances)
    if run.ended and run.rows < rows * 3 // 4:
        run = _run(plan, place, run.rows, instances)
    if not run.rows:
        raise OptionError(
            "calibrate", "needs rows to measure", "none", "Look whether the streams have any."
        )
    if run.batches < _LEAST_BATCHES:
        raise OptionError(
            "calibrate",
            f"needs rows for {_LEAST_BATCHES} batches at least",
            f"{run.rows:,}, which make {run.batches}",
            "Give the streams more rows.",
        )
    return QueryCalibration(
        fingerprint=plan.fingerprint,
        rows=run.rows,
        batches=run.batches,
        instances=run.instances,
        slots=run.slots,
        subqueries=tuple(run.known),
        beside=run.beside,
        facts={
            "query": title,
            "made": utc_now().isoformat(timespec="seconds"),
            "tidegate": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "cores": cores(),
            "master": place.master,
            "windows": {s.name: s.operator.title() for s in plan.subqueries},
        },
    )


@dataclass
class _Run:
    """The measurements so far; `ended` is set when the input ran out of rows."""

    known: list[MeasuredSubquery]
    last: frozenset[str]
    slots: int | None
    beside: Estimator = field(default_factory=lambda: Estimator(everywhere=True))
    instances: int = 1
    rows: int = 0
    batches: int = 0
    ended: bool = False
    seconds: float = 0.0

    def take(self, observed: Sequence[Observation]) -> None:
        """Add one batch, given the observations of all subqueries."""
        self.instances = max(len(seen.instances) for seen in observed)
        self.batches += 1
        samples = [seen.sample(self.slots) for seen in observed]
        made = {seen.subquery: s.outputs for seen, s in zip(observed, samples, strict=True)}
        self.beside = self.beside.after(
            whole(samples, sum(made[name] for name in made if name in self.last))
        )
        for place, (seen, sample) in enumerate(zip(observed, samples, strict=True)):
            known = self.known[place]
            came = [0, 0]
            for load in seen.inputs:
                came[load.side] += load.tuples
            given = [load for load in seen.inputs if load.source is None]
            known = known.with_sides((came[0], came[1]), seen.sides)
            edges = known.edges.with_more(
                sum(made[load.stream] for load in given), sum(load.tuples for load in given)
            )
            after = known.estimator.after(sample)
            self.known[place] = replace(known, edges=edges, estimator=after)


def _run(plan: Plan, place: Place, rows: int, instances: int | None) -> _Run:
    unit = max(rows // (_ROUNDS * sum(_SIZES)), 1)
    sizes = [unit * size for size in _SIZES] * _ROUNDS
    options = RunOptions(instances=instances, batch_rows=sizes[0])
    loop = prepare(plan, place, {t.name: NothingSink() for t in plan.targets}, options)
    run = _Run([_nothing(subquery) for subquery in plan.subqueries], _last(plan), place.cores())
    try:
        for number, size in enumerate([*sizes[:_WARM], *sizes]):
            loop.controls.ask_rows(size)
            report = loop.step()
            run.ended = report is None or loop.manifest.finished
            if report is None or report.rows_in == 0:
                break
            run.rows += report.rows_in
            run.seconds += report.seconds
            if number >= _WARM:
                run.take(loop.books.load.observed)
            if run.ended or (run.seconds > _MOST_S and run.batches >= _LEAST_BATCHES):
                break
    finally:
        loop.close()
    return run


def _nothing(subquery: Subquery) -> MeasuredSubquery:
    operation = subquery.operator.operation
    estimator = Estimator(everywhere=operation.everywhere)
    return MeasuredSubquery(subquery.name, operation.kind, operation.method, estimator)


def _feeds(plan: Plan, subquery: Subquery) -> tuple[str, ...]:
    """The source of each input of a subquery: a stream, or another subquery."""
    origins = (prefix.origin for prefix in subquery.prefixes)
    return tuple(
        plan.subqueries[o.subquery].name if isinstance(o, Edge) else plan.streams[o].name
        for o in origins
    )


def _last(plan: Plan) -> frozenset[str]:
    """The subqueries whose rows go to an output."""
    return frozenset(plan.subqueries[target.edge.subquery].name for target in plan.targets)


def _methods(subqueries: Sequence[tuple[str, str | None]]) -> str:
    """The subqueries as text, with the method of each join."""
    return ", ".join(f"{name} {method}" if method else name for name, method in subqueries)
