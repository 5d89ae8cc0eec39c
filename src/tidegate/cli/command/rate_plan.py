"""`tidegate plan --rate`: how a query behaves at steady rates, and the instances it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidegate.cli.text.calibration import unseen
from tidegate.cli.text.quantity import number_text, seconds_between, seconds_text
from tidegate.driver.options import DEFAULT_BUCKETS
from tidegate.errors import OptionError, near
from tidegate.model.sizing.calibration_file import QueryCalibration
from tidegate.model.sizing.proposal import InstanceChoice, InstanceLimit, Proposal, propose
from tidegate.plan.explain import many, table
from tidegate.plan.physical import Plan
from tidegate.session.calibration.calibrate import model_of
from tidegate.session.options import seconds_of
from tidegate.session.place import Place


def rates_of(texts: Sequence[str], plan: Plan) -> dict[str, float]:
    """Reads repeated RATE or NAME=RATE; a bare number is for every stream without its own."""
    names = list(dict.fromkeys(stream.name for stream in plan.streams))
    every: float | None = None
    own: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        rate = _rate(value, text)
        if not sign and every is not None:
            raise OptionError("--rate", "one number for all streams is possible", text)
        if not sign:
            every = rate
            continue
        if name not in names:
            raise OptionError("--rate", "must name a stream of the query", name, near(name, names))
        if name in own:
            raise OptionError("--rate", "a stream can be named once", f"{name} twice")
        own[name] = rate
    missing = [name for name in names if name not in own]
    if every is None and missing:
        raise OptionError(
            "--rate",
            "must say how fast every stream is",
            f"none for {', '.join(missing)}",
            f"Add --rate {missing[0]}=RATE, or a number for all of them.",
        )
    return {name: own.get(name, every or 0.0) for name in names}


def _rate(value: str, text: str) -> float:
    try:
        rate = float(value.replace("_", ""))
    except ValueError:
        shape = "must be tuples a second, or NAME=RATE"
        raise OptionError("--rate", shape, text, "Write for example --rate 20000.") from None
    if not math.isfinite(rate):
        raise OptionError("--rate", "must be a finite number", text)
    if rate <= 0:
        raise OptionError("--rate", "must be above zero", text)
    return rate


@dataclass(frozen=True)
class RateTarget:
    """The target: tuples per second by stream, and optionally a mean latency.

    Batches start at least `trigger_s` seconds apart.
    """

    rates: Mapping[str, float]
    latency_s: float | None
    trigger_s: float = 0.0

    @staticmethod
    def of(
        rates: Sequence[str], latency: str | None, trigger: str | None, plan: Plan
    ) -> RateTarget:
        """From the values of `--rate`, `--latency` and `--trigger`."""
        latency_s = None if latency is None else seconds_of(latency, "--latency")
        if latency_s is not None and latency_s <= 0:
            raise OptionError("--latency", "must be above zero", str(latency))
        trigger_s = 0.0 if trigger is None else seconds_of(trigger, "--trigger")
        if trigger_s < 0:
            raise OptionError("--trigger", "must not be negative", str(trigger))
        return RateTarget(rates_of(rates, plan), latency_s, trigger_s)

    @property
    def whole(self) -> float:
        """Tuples per second over all streams."""
        return sum(self.rates.values())

    def text(self) -> str:
        """The rates, and the latency if one was given."""
        each = ", ".join(f"{number_text(rate)} of {name}" for name, rate in self.rates.items())
        several = f" ({each})" if len(self.rates) > 1 else ""
        asked = "" if self.latency_s is None else f", within {seconds_text(self.latency_s)}"
        every = f", a batch every {seconds_text(self.trigger_s)}" if self.trigger_s else ""
        return f"at {number_text(self.whole)} tuples a second{several}{every}{asked}"


@dataclass(frozen=True)
class SizedQuery:
    """The proposed instances, one number per subquery or one for all, and why."""

    lines: list[str]
    counts: list[int]
    facts: Mapping[str, Any]


def for_rates(
    known: QueryCalibration, plan: Plan, place: Place, target: RateTarget, total: int, alike: bool
) -> SizedQuery:
    """The model's prediction for several numbers of instances, and the proposed one per subquery.

    At most `total` in all; with `alike` all subqueries get the same number.
    """
    cores = place.cores()
    most = InstanceLimit(cores or DEFAULT_BUCKETS, total, alike)
    model = replace(model_of(known, plan, cores), trigger_s=target.trigger_s)
    proposal = propose(model, target.rates, target.latency_s, most)
    lines = [target.text(), *(f"  {line}" for line in table(_rows(proposal, target.whole)))]
    made_on = known.facts.get("master")
    if made_on != place.master:
        lines.append(f"measured with --master {made_on}: on {place.master} batches cost otherwise")
    for of in known.subqueries:
        if (doubt := unseen(of)) is not None:
            lines.append(f"{of.name}: {doubt}")
    counts = list(proposal.chosen.instances.values())
    counts = counts[:1] if alike else counts
    lines += _answer(proposal, target, cores, sum(counts))
    return SizedQuery(lines, counts, _facts(proposal, target))


def _facts(proposal: Proposal, target: RateTarget) -> dict[str, Any]:
    return {
        "rates": dict(target.rates),
        "latency_s": target.latency_s,
        "trigger_s": target.trigger_s,
        "met": proposal.met,
        "sure": proposal.sure,
        "choices": [
            {
                "instances": dict(choice.instances),
                "load": asdict(choice.steady.load),
                "batch_s": asdict(choice.steady.batch_s),
                "latency_s": asdict(choice.steady.latency_s),
                "times_the_rates": asdict(choice.limit),
            }
            for choice in proposal.choices
        ],
    }


def _rows(proposal: Proposal, whole: float) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("instances", "load", "batch", "mean latency", "95 percent interval", "at most a second")
    ]
    for choice in proposal.choices:
        steady = choice.steady
        behind = math.isinf(steady.latency_s.value)
        rows.append(
            (
                _instances(choice),
                f"{steady.load.value:.0%}",
                "-" if behind else seconds_text(steady.batch_s.value),
                "falls behind" if behind else seconds_text(steady.latency_s.value),
                "-" if behind else seconds_between(steady.latency_s),
                _limit(choice, whole),
            )
        )
    return rows


def _limit(choice: InstanceChoice, whole: float) -> str:
    """The highest rate in tuples per second that a choice sustains."""
    limit = choice.limit
    low = number_text(limit.low * whole)
    if math.isinf(limit.value):
        return f"{low} or more"
    high = "more" if math.isinf(limit.high) else number_text(limit.high * whole)
    return f"{number_text(limit.value * whole)} ({low} to {high})"


def _answer(proposal: Proposal, target: RateTarget, cores: int | None, total: int) -> list[str]:
    """The proposed instances; if none suffice, why, and what is possible."""
    chosen, latency_s = proposal.chosen, target.latency_s
    if proposal.met:
        doubt = [] if proposal.sure else ["that is likely, not sure: see the interval"]
        return [*doubt, f"proposed: {many(total, 'instance')}"]
    steady = chosen.steady
    with_all = "more instances"
    if cores is not None:
        with_all = "the only core" if cores == 1 else f"the {cores} cores"
    if latency_s is not None and latency_s < steady.floor_s.value:
        floor = f"{seconds_text(steady.floor_s.value)} ({seconds_between(steady.floor_s)})"
        why = f"a batch takes {floor} however small it is: no latency can be below that"
    elif steady.load.value >= 1:
        most = number_text(chosen.limit.value * target.whole)
        why = f"{with_all} cannot keep up: the most is {most} tuples a second"
    elif latency_s is not None and latency_s < target.trigger_s / 2 + steady.floor_s.value:
        apart, wait = (seconds_text(s) for s in (target.trigger_s, target.trigger_s / 2))
        why = f"batches are {apart} apart, so a tuple waits {wait} for one: a shorter trigger helps"
    else:
        best = f"{seconds_text(steady.latency_s.value)} ({seconds_between(steady.latency_s)})"
        why = f"{with_all} cannot have that latency: the best is {best}"
    lines = [why]
    if steady.load.value >= 1 and math.isfinite(proposal.ever):
        ever = number_text(proposal.ever * target.whole)
        lines.append(f"with any number of instances the most is {ever} tuples a second")
    if latency_s is not None and proposal.within:
        rate = number_text(proposal.within * target.whole)
        lines.append(f"within {seconds_text(latency_s)} the most is {rate} tuples a second")
    return [*lines, f"the best there is: {many(total, 'instance')}"]


def _instances(choice: InstanceChoice) -> str:
    counts = choice.instances
    if len(set(counts)) == 1:
        return str(next(iter(counts.values())))
    return ", ".join(f"{name} {count}" for name, count in counts.items())
