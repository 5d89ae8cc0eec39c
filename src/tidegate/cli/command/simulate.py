"""`tidegate simulate`: the model's prediction for a join over a trace of rates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click
import numpy as np

from tidegate.calendar.duration import duration_text, duration_us
from tidegate.cli.option.target import check_target, write_target
from tidegate.cli.option.value import Number, Whole
from tidegate.cli.text.answer import STANDARD_OUTPUT, check_json_file, json_file_option
from tidegate.errors import OptionError, QueryError, near
from tidegate.model.control.controller import LOWER, UPPER, Limits
from tidegate.model.control.saso import saso
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.experiment import EXPERIMENTS, Experiment
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import Prediction
from tidegate.model.join.simulation import Counts, JoinModel, scaled, timeline
from tidegate.model.join.trace_file import read_trace
from tidegate.model.operation import Lookback
from tidegate.model.sizing.calibration_file import read_calibration

FIXED, MODEL, THRESHOLD, AUTO = "fixed", "model", "threshold", "auto"
MAXIMUM = 64
TYPICAL = JoinCosts(alpha=2e-8, beta=1e-6, sigma=0.01)
"""Costs used if none are given."""

_TARGETS = f"Leave it out; targets are --policy '{AUTO}?latency=2'."
_THRESHOLDS = f"Leave it out; thresholds are --policy '{THRESHOLD}?upper=0.8&lower=0.4'."
_ROWS = re.compile(r"\s*([\d_,]+)\s*(?:rows?|tuples?)\s*", re.IGNORECASE)


@click.command()
@click.option(
    "--trace",
    metavar="T.csv",
    help="Rates over time: a CSV file with the columns t, r and s, in seconds and tuples a second; "
    "r1, r2, ..., s1, ... for streams of several sources.",
)
@click.option(
    "--experiment",
    metavar="NAME",
    help=f"Rates that are built in: {', '.join(EXPERIMENTS)}.",
)
@click.option(
    "--window",
    default="60 seconds",
    show_default=True,
    metavar="W",
    help="What tuples are compared with: those of so much time, or so many, as '8400 rows'.",
)
@click.option(
    "--instances",
    type=Whole(least=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many there are; with a policy, at first.",
)
@click.option(
    "--calibration",
    metavar="FILE",
    help="Costs as `tidegate calibrate --json FILE` has measured them, of a query with one join; "
    "what is given beside it goes first.",
)
@click.option(
    "--alpha",
    type=Number(least=0),
    metavar="SECONDS",
    help=f"What a comparison takes.  [default: {TYPICAL.alpha:g}]",
)
@click.option(
    "--beta",
    type=Number(least=0),
    metavar="SECONDS",
    help=f"What it takes to make an output tuple.  [default: {TYPICAL.beta:g}]",
)
@click.option(
    "--sigma",
    type=Number(least=0, most=1),
    metavar="S",
    help=f"Output tuples for each comparison.  [default: {TYPICAL.sigma:g}]",
)
@click.option(
    "--quota",
    type=Number(above=0, most=1),
    default=1.0,
    show_default=True,
    metavar="Q",
    help="The part of its time that an instance has for the join.",
)
@click.option(
    "--deterministic/--no-deterministic",
    default=True,
    show_default=True,
    help="Whether tuples and output wait for their order.",
)
@click.option(
    "--batch",
    metavar="TIME",
    help="Micro-batches with this trigger, as '500 ms'; without it, the model of the paper.",
)
@click.option(
    "--batch-cost",
    metavar="TIME",
    help="With --batch: what a batch takes however small it is, as '15 ms'.  [default: 0 ms]",
)
@click.option(
    "--tuple-cost",
    type=Number(least=0),
    metavar="SECONDS",
    help="With --batch: what it takes to bring a tuple to the instances.  [default: 0]",
)
@click.option(
    "--policy",
    default=FIXED,
    show_default=True,
    metavar="fixed|model|threshold|auto",
    help="Who decides about instances: nobody, the controller of the model, or a policy of running "
    "queries: by how busy they are, as 'threshold?target=0.6', or by a latency target, as "
    "'auto?latency=2'.",
)
@click.option(
    "--maximum",
    type=Whole(least=1),
    metavar="N",
    help=f"With a policy: how many instances there may be.  [default: {MAXIMUM}]",
)
@click.option(
    "--upper-quota",
    type=Number(above=0, most=1),
    metavar="Q",
    help="With --policy model: the part of what instances can do that is enough for more.  "
    f"[default: {UPPER:g}]",
)
@click.option(
    "--lower-quota",
    type=Number(above=0, most=1),
    metavar="Q",
    help="With --policy model: the part of what one instance less can do below which there are "
    f"too many.  [default: {LOWER:g}]",
)
@click.option(
    "--ahead",
    metavar="TIME",
    help="With --policy model: how far it looks ahead, as '60 seconds', for fewer switches.  "
    "[default: 0 seconds]",
)
@json_file_option("Write one record a second")
@click.option("--plot", "plot_file", metavar="FILE", help="Draw it: FILE.png, .svg, .pdf.")
def simulate(**given: Any) -> None:
    """Predict throughput and latency of a join over time, from its rates and costs alone.

    The model is that of "Performance Modeling and Vertical Autoscaling of Stream Joins". Times are
    in seconds, throughput is in comparisons a second, of all instances together. Without --json and
    --plot a table is printed.
    """
    asked = _asked(given)
    trace = asked.experiment.trace
    instances: int | Counts = asked.instances
    if asked.scaling is not None:
        instances = asked.scaling.instances(asked.join, trace, first=asked.instances)
    predicted = asked.join.prediction(trace, instances)
    json_file, plot_file = given["json_file"], given["plot_file"]
    if json_file is not None:
        _write_json(json_file, predicted)
    if plot_file is not None:
        from tidegate.cli import plot

        write_target(plot_file, plot.drawn(plot_file, asked, predicted))
        click.echo(f"drawn in {plot_file}", err=True)
    if json_file is None and plot_file is None:
        from tidegate.cli.text.simulation import text

        judged = None
        if asked.scaling is not None:
            starts = [float(trace.times[part.start_s]) for part in asked.experiment.parts]
            judged = saso(timeline(asked.join, trace, predicted, asked.scaling.limits, starts))
        click.echo(text(asked, predicted, judged))


@dataclass(frozen=True)
class Scaling:
    """A scaling policy: its name, and its parameters for the headline.

    `limits` judge it. `instances` computes those of each interval from a join, its trace, and the
    number at `first`.
    """

    text: str
    limits: Limits
    instances: Callable[..., Counts]


@dataclass(frozen=True)
class SimulationRequest:
    """The options of a command line; `scaling` is None if the instances are fixed."""

    name: str
    experiment: Experiment
    join: JoinModel
    instances: int
    scaling: Scaling | None


def _asked(given: dict[str, Any]) -> SimulationRequest:
    """Reads all options; raises for impossible ones before anything is computed."""
    name = _named(given["trace"], given["experiment"])
    scaling = _scaling(given)
    if scaling is not None and given["instances"] > scaling.limits.maximum:
        raise OptionError(
            "--instances",
            f"must not be more than the maximum of {scaling.limits.maximum}",
            str(given["instances"]),
            "Give a larger --maximum.",
        )
    join = _join(given)
    _check_files(given["json_file"], given["plot_file"])
    if given["trace"] is not None:
        experiment = Experiment(read_trace(given["trace"]), ())
    else:
        experiment = EXPERIMENTS[given["experiment"]]()
    return SimulationRequest(name, experiment, join, given["instances"], scaling)


def _named(trace: str | None, experiment: str | None) -> str:
    if trace is not None and experiment is not None:
        raise OptionError(
            "simulate", "takes --trace or --experiment", "both", "Leave one of them out."
        )
    if experiment is not None:
        if experiment not in EXPERIMENTS:
            remedy = near(experiment, EXPERIMENTS)
            raise OptionError("--experiment", "must be a known word", experiment, remedy)
        return experiment
    if trace is None:
        raise OptionError(
            "simulate",
            "needs rates: --trace T.csv or --experiment NAME",
            "neither",
            f"Try --experiment {next(iter(EXPERIMENTS))}.",
        )
    return trace


def _join(given: dict[str, Any]) -> JoinModel:
    batch = given["batch"]
    for option in ("batch_cost", "tuple_cost"):
        if given[option] is not None and batch is None:
            raise OptionError(
                f"--{option.replace('_', '-')}",
                "is for micro-batches",
                "no --batch",
                "Give their trigger, as --batch '500 ms'.",
            )
    return JoinModel(
        window=_window(given["window"]),
        costs=_costs(given),
        quota=given["quota"],
        deterministic=given["deterministic"],
        batch=None if batch is None else Batching(_seconds("--batch", batch)),
    )


def _costs(given: dict[str, Any]) -> JoinCosts:
    """The costs given, else those measured, else typical ones."""
    file = given["calibration"]
    option = "--calibration"
    known = TYPICAL if file is None else read_calibration(file, option).join(option).costs()
    batch_cost = given["batch_cost"]
    asked = {
        "alpha": given["alpha"],
        "beta": given["beta"],
        "sigma": given["sigma"],
        "batch_s": None if batch_cost is None else _seconds("--batch-cost", batch_cost),
        "tuple_s": given["tuple_cost"],
    }
    return replace(known, **{name: value for name, value in asked.items() if value is not None})


def _window(text: str) -> Lookback:
    rows = _ROWS.fullmatch(text)
    zero = OptionError("--window", "must be longer than zero", text)
    if rows is not None:
        count = int(rows[1].replace(",", "").replace("_", "") or 0)
        if not count:
            raise zero
        return Lookback(rows=count)
    remedy = "Write for example '60 seconds' or '8400 rows'."
    try:
        us = duration_us(text, "--window")
    except QueryError as error:
        raise OptionError(
            "--window", "must be a length of time, or a number of rows", repr(text), remedy
        ) from error
    if us <= 0:
        raise zero
    return Lookback(seconds=us / 1e6)


def _seconds(option: str, text: str) -> float:
    try:
        us = duration_us(text, option)
    except QueryError as error:
        raise OptionError(option, error.requirement, error.got, error.remedy) from None
    if us < 0:
        raise OptionError(option, "must not be negative", text)
    return us / 1e6


def _scaling(given: dict[str, Any]) -> Scaling | None:
    """The policy by name; only that of running queries has parameters."""
    name, sign, _ = given["policy"].partition("?")
    if name not in POLICIES:
        raise OptionError("--policy", "must be a known word", name, near(name, POLICIES))
    if sign and name not in (THRESHOLD, AUTO):
        remedy = "Use --upper-quota, --lower-quota and --ahead." if name == MODEL else ""
        raise OptionError("--policy", f"{name} has no parameters here", given["policy"], remedy)
    policy = POLICIES[name]
    for option in _POLICY_OPTIONS:
        if given[option] is not None and option not in policy.options:
            raise OptionError(
                f"--{option.replace('_', '-')}",
                "is for a policy" if option == "maximum" else f"is for --policy {MODEL}",
                f"--policy {name}",
                policy.remedy,
            )
    return policy.make(given)


def _by_model(given: dict[str, Any]) -> Scaling:
    """The model's controller."""
    own = (("maximum", "maximum"), ("upper", "upper_quota"), ("lower", "lower_quota"))
    known = {name: given[option] for name, option in own if given[option] is not None}
    limits = Limits(**{"maximum": MAXIMUM, **known}, quota=given["quota"])
    ahead_s = _seconds("--ahead", given["ahead"]) if given["ahead"] is not None else 0.0
    ahead = f", {duration_text(round(ahead_s * 1e6))} ahead" if ahead_s else ""
    return Scaling(f"{MODEL}{ahead}", limits, partial(scaled, limits=limits, ahead_s=ahead_s))


def _least(*limits: int | None) -> int:
    """The smallest of the limits that are given."""
    return min((limit for limit in limits if limit is not None), default=MAXIMUM)


def _by_threshold(given: dict[str, Any]) -> Scaling:
    """The threshold policy, with no more instances than it or `--maximum` allows."""
    from tidegate.elastic.dry_run import simulated
    from tidegate.elastic.registry import of

    policy: Any = of(given["policy"], "--policy")
    limits = Limits(
        maximum=_least(given["maximum"], policy.maximum),
        quota=given["quota"],
    )
    decides = replace(policy, maximum=limits.maximum)
    return Scaling(decides.name, limits, partial(simulated, decides))


def _by_target(given: dict[str, Any]) -> Scaling:
    """The policy with a latency target, with no more instances than it or `--maximum` allows."""
    from tidegate.elastic.registry import of
    from tidegate.elastic.simulated_query import simulated_join

    policy: Any = of(given["policy"], "--policy")
    if policy.error is not None:
        raise OptionError(
            "--policy",
            "error is for queries that shed, and the join that is simulated here does not",
            given["policy"],
            "Leave error out.",
        )
    limits = Limits(maximum=_least(given["maximum"], policy.cost), quota=given["quota"])
    decides = replace(policy, cost=limits.maximum)
    text = f"{decides.name}, latency {decides.goal.latency_s:g} s"
    return Scaling(text, limits, partial(simulated_join, decides))


@dataclass(frozen=True)
class _Policy:
    """How to make a policy from the options, which it uses, and advice for others."""

    make: Callable[[dict[str, Any]], Scaling | None]
    options: tuple[str, ...]
    remedy: str


_POLICY_OPTIONS = ("maximum", "upper_quota", "lower_quota", "ahead")
POLICIES = {
    FIXED: _Policy(lambda _: None, (), f"Give --policy {MODEL}."),
    MODEL: _Policy(_by_model, _POLICY_OPTIONS, ""),
    THRESHOLD: _Policy(_by_threshold, ("maximum",), _THRESHOLDS),
    AUTO: _Policy(_by_target, ("maximum",), _TARGETS),
}


def _check_files(json_file: str | None, plot_file: str | None) -> None:
    check_json_file(json_file)
    if plot_file is not None:
        from tidegate.cli import plot

        plot.check("--plot", plot_file)
        check_target("--plot", plot_file)


def _write_json(name: str, predicted: Prediction) -> None:
    content = json.dumps(records(predicted), indent=None, allow_nan=False)
    lines = content.replace("}, {", "},\n {")
    if name == STANDARD_OUTPUT:
        click.echo(lines)
        return
    write_target(name, f"{lines}\n".encode())
    click.echo(f"{len(predicted.times):,} records in {name}", err=True)


def records(predicted: Prediction) -> list[dict[str, Any]]:
    """One record per second; null for undefined values, such as the latency of no tuples."""
    names = (
        "window_r",
        "window_s",
        "comparisons",
        "throughput",
        "latency_in",
        "latency_join",
        "latency_out",
        "latency_batch",
        "latency",
    )
    columns = {name: _plain(getattr(predicted, name)) for name in names}
    times = [int(t) if t == int(t) else t for t in predicted.times.tolist()]
    instances = predicted.instances.tolist()
    return [
        {"t": t, **{name: column[i] for name, column in columns.items()}, "instances": instances[i]}
        for i, t in enumerate(times)
    ]


def _plain(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
