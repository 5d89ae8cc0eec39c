"""Sets what a query is expected to do beside what it does, for status, summary and live view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tidegate.model.control.saso import Saso
from tidegate.model.cost.calibration import Calibration, Estimate

_CONSTANTS = ("alpha", "beta", "sigma", "comparison", "tuple_s", "batch_s")


@dataclass(frozen=True)
class SubqueryExpectation:
    """One subquery at its rates: comparisons of a join in a second, tuples of another operator.

    `utilisation` is the share of the time that its instances need for it.
    """

    instances: int
    rates: tuple[float, ...]
    unit: str
    throughput: float
    measured: float
    utilisation: float
    constants: Calibration

    def as_dict(self) -> dict[str, Any]:
        return {
            "instances": self.instances,
            "rates": [round(rate, 1) for rate in self.rates],
            "unit": self.unit,
            "throughput": round(self.throughput, 1),
            "measured_throughput": round(self.measured, 1),
            "utilisation": round(self.utilisation, 4),
            "constants": {name: asdict(getattr(self.constants, name)) for name in _CONSTANTS},
        }


@dataclass(frozen=True)
class Expectation:
    """A query in the newest second: what its rates mean for it, and what was measured.

    `load` is the share of the time that it needs, from 1 on it falls behind. Latencies are means.
    `slowdown` is how many times as long as their costs say batches took in the last seconds.
    """

    load: float
    batch_s: float
    latency_s: float
    measured_s: float | None
    subqueries: Mapping[str, SubqueryExpectation]
    slowdown: float = 1.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "load": round(self.load, 4),
            "slowdown": round(self.slowdown, 4),
            "batch_ms": round(self.batch_s * 1e3, 3),
            "latency_ms": round(self.latency_s * 1e3, 3),
            "measured_latency_ms": None
            if self.measured_s is None
            else round(self.measured_s * 1e3, 3),
            "subqueries": {name: of.as_dict() for name, of in self.subqueries.items()},
        }


_NOTHING = dict.fromkeys(Expectation(0, 0, 0, None, {}).as_dict())
"""A second of which nothing was predicted."""


@dataclass(frozen=True)
class ForecastSecond:
    """What was expected and measured in one interval: latency in seconds, throughput."""

    latency_s: float
    measured_s: float
    throughput: float
    measured: float


@dataclass(frozen=True)
class ForecastSummary:
    """The forecast of a run: the newest, how good it was, and how well policies did.

    `errors` are medians over the newest hour of the errors of a second, as shares of what was
    measured.
    """

    newest: Expectation | None = None
    seconds: int = 0
    latency_s: float | None = None
    measured_s: float | None = None
    errors: tuple[float, float] | None = None
    saso: Mapping[str, Saso] | None = None

    @staticmethod
    def of(
        newest: Expectation | None, past: Sequence[ForecastSecond], saso: Mapping[str, Saso]
    ) -> ForecastSummary:
        if not past:
            return ForecastSummary(newest, saso=saso or None)
        every = np.array([[s.latency_s, s.measured_s, s.throughput, s.measured] for s in past])
        expected, measured = every[:, ::2], every[:, 1::2]
        errors = np.abs(expected - measured) / np.maximum(measured, 1e-12)
        latency, throughput = (float(one) for one in np.median(errors, axis=0))
        return ForecastSummary(
            newest=newest,
            seconds=len(past),
            latency_s=float(np.median(every[:, 0])),
            measured_s=float(np.median(every[:, 1])),
            errors=(latency, throughput),
            saso=saso or None,
        )

    def as_dict(self) -> dict[str, Any] | None:
        """As summary and status have it; None where nothing could be predicted in the whole run.

        Where only the newest second has none, its figures are None and `over_run` is there.
        """
        if self.newest is None and self.errors is None:
            return None
        found = dict(_NOTHING) if self.newest is None else self.newest.as_dict()
        if self.errors is not None and self.latency_s is not None and self.measured_s is not None:
            found["over_run"] = {
                "seconds": self.seconds,
                "latency_ms": round(self.latency_s * 1e3, 3),
                "measured_latency_ms": round(self.measured_s * 1e3, 3),
                "latency_error": round(self.errors[0], 4),
                "throughput_error": round(self.errors[1], 4),
            }
        return found

    def lines(self) -> list[str]:
        """For the summary in a terminal."""
        lines = []
        if self.errors is not None and self.latency_s is not None and self.measured_s is not None:
            latency, throughput = self.errors
            lines.append(
                f"model: mean latency {time_text(self.latency_s)} predicted, "
                f"{time_text(self.measured_s)} measured; median error by the second "
                f"{latency:.0%}, of throughput {throughput:.1%}"
            )
        expected = () if self.newest is None else self.newest.subqueries
        several = len({*expected, *(self.saso or ())}) > 1
        for name, of in ({} if self.newest is None else self.newest.subqueries).items():
            lines.append(f"model{f' of {name}' if several else ''}: {constants_text(of)}")
        for name, saso in (self.saso or {}).items():
            lines.append(f"scaling{f' of {name}' if several else ''}: {saso_text(saso)}")
        return lines


def constants_text(of: SubqueryExpectation) -> str:
    """The costs with their intervals, those of a join or those of tuples."""
    found = of.constants
    named = [("tuple", found.tuple_s), ("batch", found.batch_s)]
    if found.sigma.value or found.comparison.value:
        sigma = found.sigma
        said = f"sigma {sigma.value:.3g} ({sigma.low:.3g} to {sigma.high:.3g})"
        named = [("alpha", found.alpha), ("beta", found.beta), *named]
        return ", ".join([*(_between(*one) for one in named[:2]), said, _between(*named[3])])
    return ", ".join(_between(*one) for one in named)


def saso_text(found: Saso) -> str:
    """Stability, accuracy, settling time and overshoot in a line."""
    parts = [
        f"{found.switches} switch{'' if found.switches == 1 else 'es'}, {found.reversals} back",
        f"enough instances {found.enough:.0%} of the time",
    ]
    if found.settling_s is not None:
        parts.append(f"settled within {found.settling_s:.0f} s")
    if found.overshoot is not None:
        parts.append(f"overshoot {found.overshoot}")
    return ", ".join(parts)


def _between(name: str, of: Estimate) -> str:
    return f"{name} {time_text(of.value)} ({time_text(of.low)} to {time_text(of.high)})"


def time_text(seconds: float) -> str:
    """A time with about three digits: 0, 1.6 ns, 12 us, 4.3 ms, 2.1 s."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if seconds >= size * 0.9995:
            value = seconds / size
            return f"{value:,.{0 if value >= 99.5 else 1}f} {unit}"
    return "0" if seconds <= 0 else f"{seconds / 1e-9:.2g} ns"
