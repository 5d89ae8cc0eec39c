"""The text of `tidegate simulate`: a table of the parts of a trace, and remarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tidegate.calendar.duration import duration_text
from tidegate.model.control.saso import Saso
from tidegate.model.join.experiment import TracePart
from tidegate.model.join.predict import Prediction
from tidegate.model.join.simulation import JoinModel
from tidegate.model.operation import Floats, Lookback

if TYPE_CHECKING:
    from tidegate.cli.command.simulate import SimulationRequest


MOST_LINES = 30
_LENGTHS_S = (60, 300, 900, 3_600, 6 * 3_600, 86_400)


def text(asked: SimulationRequest, predicted: Prediction, judged: Saso | None) -> str:
    """The set-up, the table, where work waited and, for a policy, how well it did."""
    lines = [headline(asked), "", *_table(asked, predicted), "", _waited(asked, predicted)]
    if judged is not None:
        lines += _judged(judged)
    return "\n".join(lines)


def headline(asked: SimulationRequest) -> str:
    """What is simulated, in one line."""
    join, costs = asked.join, asked.join.costs
    policy = "" if asked.scaling is None else f"; policy {asked.scaling.text}"
    kind = "deterministic" if join.deterministic else "not deterministic"
    if join.batch is not None:
        kind += f", a batch every {duration_text(round(join.batch.trigger_s * 1e6))}"
    return (
        f"{asked.name}: {_many(len(asked.experiment.trace), 'second')}, "
        f"{window_text(join.window)}, {kind}; "
        f"alpha {costs.alpha:g}, beta {costs.beta:g}, sigma {costs.sigma:g}, quota {join.quota:g}"
        f"{_batches(join)}{policy}"
    )


def _batches(join: JoinModel) -> str:
    """The costs of batches, if they are simulated."""
    if join.batch is None:
        return ""
    costs = join.costs
    vary = f", scatter {costs.scatter:.2g}" if costs.scatter else ""
    return f", batch {costs.batch_s:g}, tuple {costs.tuple_s:g}{vary}"


def window_text(window: Lookback) -> str:
    if window.rows < np.inf:
        return f"windows of {window.rows:,.0f} rows"
    return f"windows of {duration_text(round(window.seconds * 1e6))}"


def stretches(asked: SimulationRequest) -> Sequence[TracePart]:
    """The parts of an experiment; other traces are cut into minutes, long ones into more."""
    if asked.experiment.parts:
        return asked.experiment.parts
    times = asked.experiment.trace.times
    seconds = len(times)
    fits = (length for length in _LENGTHS_S if seconds <= length * MOST_LINES)
    length = next(fits, _LENGTHS_S[-1])
    return [
        TracePart(f"{times[start]:g} s", start, min(start + length, seconds))
        for start in range(0, seconds, length)
    ]


def _table(asked: SimulationRequest, predicted: Prediction) -> list[str]:
    trace = asked.experiment.trace
    shown = predicted.terms
    first = "part" if asked.experiment.parts else "from"
    rows = [
        [first, "R/s", "S/s", "comparisons/s", "done/s", "latency", *shown, "instances", "switches"]
    ]
    switched = np.diff(predicted.instances, prepend=predicted.instances[0]) != 0
    for part in stretches(asked):
        span = slice(part.start_s, part.end_s)
        rates = (of.sum(axis=1)[span].mean() for of in (trace.r, trace.s))
        work = (predicted.comparisons[span] / trace.step_s, predicted.throughput[span])
        rows.append(
            [
                part.name,
                *(f"{rate:,.0f}" for rate in rates),
                *(_short(values.mean()) for values in work),
                _ms(predicted.latency[span]),
                *(_ms(values[span]) for values in shown.values()),
                _range(predicted.instances[span]),
                str(int(switched[span].sum())),
            ]
        )
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def _waited(asked: SimulationRequest, predicted: Prediction) -> str:
    """Where there was more work than time."""
    step_s = asked.experiment.trace.step_s
    left = np.cumsum(predicted.comparisons - predicted.throughput * step_s)
    left[left < 1e-9 * np.maximum(np.cumsum(predicted.comparisons), 1)] = 0.0
    join = asked.join
    owed_s = left * join.costs.comparison_s / (predicted.instances * join.quota)
    usual_s = 0.0 if join.batch is None else 2 * join.batch.trigger_s + 1  # what batches wait for
    late = owed_s > usual_s
    if late.any():
        worst = int(owed_s.argmax())
        return (
            f"overload: work was left over in {_many(int(late.sum()), 'second')}, at most "
            f"{_ms(owed_s[worst : worst + 1])} of it at t = {predicted.times[worst]:g}"
        )
    if join.batch is not None:
        return "latency is from the arrival of a tuple to the end of its batch, on average"
    return "the instances kept up: all work was done in the second in which it came"


def _judged(judged: Saso) -> list[str]:
    missing = "none to see"
    settling = missing if judged.settling_s is None else f"{judged.settling_s:g} s at most"
    after = missing
    if judged.overshoot is not None and judged.undershoot is not None:
        after = f"{judged.overshoot} too many and {judged.undershoot} too few at most, once settled"
    return [
        f"stability: {_many(judged.switches, 'switch', 'switches')}, of which {judged.reversals} "
        "turned back",
        f"accuracy: enough instances in {judged.enough:.1%} of the time, {judged.distance:.2f} "
        "from those needed on average",
        f"settling time: {settling}",
        f"overshoot: {after}",
    ]


def _range(counts: npt.NDArray[np.int64]) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low}-{high}"


def _ms(seconds: Floats) -> str:
    """A mean latency with its unit; a dash if there is none."""
    known = seconds[np.isfinite(seconds)]
    if not len(known):
        return "-"
    ms = float(known.mean()) * 1e3
    if ms >= 9_950:
        return f"{ms / 1e3:,.0f} s"
    return f"{ms / 1e3:.2f} s" if ms >= 999.5 else f"{ms:.3g} ms" if ms < 100 else f"{ms:.0f} ms"


def _short(count: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g}"


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"
