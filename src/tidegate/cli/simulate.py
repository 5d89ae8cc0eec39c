"""`tidegate simulate`: what the model says of a join over a trace of rates."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tidegate.cli.target import check_target, write_target
from tidegate.cli.value import Number, Whole
from tidegate.duration import duration_us
from tidegate.errors import OptionError, QueryError, near
from tidegate.model.calibration_file import read_calibration
from tidegate.model.controller import LOWER, UPPER, Limits
from tidegate.model.costs import Costs
from tidegate.model.experiment import EXPERIMENTS, Experiment
from tidegate.model.micro_batch import Batching
from tidegate.model.prediction import Prediction
from tidegate.model.saso import saso
from tidegate.model.simulation import Join, scaled, timeline
from tidegate.model.trace_file import read_trace
from tidegate.model.window import TimeWindow, TupleWindow, Window

if TYPE_CHECKING:
    from tidegate.elastic.policy import Policy

FIXED, MODEL, THRESHOLD = "fixed", "model", "threshold"
POLICIES = (FIXED, MODEL, THRESHOLD)
MAXIMUM = 64
TYPICAL = Costs(alpha=2e-8, beta=1e-6, sigma=0.01)
"""Costs where nothing else is said."""

STANDARD_OUTPUT = "-"
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
    metavar="fixed|model|threshold",
    help="Who decides about instances: nobody, the controller of the model, or the policy of "
    "running queries that sees how busy they are, as 'threshold?target=0.6'.",
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
@click.option(
    "--json", "json_file", metavar="FILE", help="Write one record a second; - is standard output."
)
@click.option("--plot", "plot_file", metavar="FILE", help="Draw it: FILE.png, .svg, .pdf.")
def simulate(**given: Any) -> None:
    """Predict throughput and latency of a join over time, from its rates and costs alone.

    The model is that of "Performance Modeling and Vertical Autoscaling of Stream Joins". Times are
    in seconds, throughput is in comparisons a second, of all instances together. Without --json and
    --plot a table is printed.
    """
    asked = _asked(given)
    trace = asked.experiment.trace
    instances: Any = asked.instances
    if asked.threshold is not None:
        from tidegate.elastic.simulated import simulated

        instances = simulated(asked.threshold, asked.join, trace, first=asked.instances)
    elif asked.limits is not None:
        instances = scaled(
            asked.join, trace, asked.limits, first=asked.instances, ahead_s=asked.ahead_s
        )
    predicted = asked.join.prediction(trace, instances)
    json_file, plot_file = given["json_file"], given["plot_file"]
    if json_file is not None:
        _write_json(json_file, predicted)
    if plot_file is not None:
        from tidegate.cli import plot

        write_target(plot_file, plot.drawn(plot_file, asked, predicted))
        click.echo(f"drawn in {plot_file}", err=True)
    if json_file is None and plot_file is None:
        from tidegate.cli.simulation_text import text

        judged = None
        if asked.limits is not None:
            starts = [float(trace.times[part.start_s]) for part in asked.experiment.parts]
            judged = saso(timeline(asked.join, trace, predicted, asked.limits, starts))
        click.echo(text(asked, predicted, judged))


@dataclass(frozen=True)
class Asked:
    """What a command line asks for.

    `limits` are those by which a policy is judged, and the controller of the model decides; None
    without a policy. `threshold` is the policy of that name, where it decides.
    """

    name: str
    experiment: Experiment
    join: Join
    instances: int
    limits: Limits | None
    ahead_s: float
    threshold: Policy | None = None


def _asked(given: dict[str, Any]) -> Asked:
    """Read all options, and refuse what cannot be before anything is computed."""
    name = _named(given["trace"], given["experiment"])
    policy = _policy(given["policy"])
    limits = _limits(given, policy)
    threshold = None
    if policy == THRESHOLD and limits is not None:
        threshold, limits = _by_threshold(given, limits)
    ahead_s = _seconds("--ahead", given["ahead"]) if given["ahead"] is not None else 0.0
    if limits is not None and given["instances"] > limits.maximum:
        raise OptionError(
            "--instances",
            f"must not be more than the maximum of {limits.maximum}",
            str(given["instances"]),
            "Give a larger --maximum.",
        )
    join = _join(given)
    _check_files(given["json_file"], given["plot_file"])
    if given["trace"] is not None:
        experiment = Experiment(read_trace(given["trace"]), ())
    else:
        experiment = EXPERIMENTS[given["experiment"]]()
    return Asked(name, experiment, join, given["instances"], limits, ahead_s, threshold)


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


def _join(given: dict[str, Any]) -> Join:
    batch = given["batch"]
    for option in ("batch_cost", "tuple_cost"):
        if given[option] is not None and batch is None:
            raise OptionError(
                f"--{option.replace('_', '-')}",
                "is for micro-batches",
                "no --batch",
                "Give their trigger, as --batch '500 ms'.",
            )
    return Join(
        window=_window(given["window"]),
        costs=_costs(given),
        quota=given["quota"],
        deterministic=given["deterministic"],
        batch=None if batch is None else Batching(_seconds("--batch", batch)),
    )


def _costs(given: dict[str, Any]) -> Costs:
    """What is given, else what was measured, else what is typical."""
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


def _window(text: str) -> Window:
    rows = _ROWS.fullmatch(text)
    zero = OptionError("--window", "must be longer than zero", text)
    if rows is not None:
        count = int(rows[1].replace(",", "").replace("_", "") or 0)
        if not count:
            raise zero
        return TupleWindow(count)
    remedy = "Write for example '60 seconds' or '8400 rows'."
    try:
        us = duration_us(text, "--window")
    except QueryError as error:
        raise OptionError(
            "--window", "must be a length of time, or a number of rows", repr(text), remedy
        ) from error
    if us <= 0:
        raise zero
    return TimeWindow(us / 1e6)


def _seconds(option: str, text: str) -> float:
    try:
        us = duration_us(text, option)
    except QueryError as error:
        raise OptionError(option, error.requirement, error.got, error.remedy) from None
    if us < 0:
        raise OptionError(option, "must not be negative", text)
    return us / 1e6


def _policy(text: str) -> str:
    """The name of a policy; only that of running queries has parameters."""
    name, sign, _ = text.partition("?")
    if name not in POLICIES:
        raise OptionError("--policy", "must be a known word", name, near(name, POLICIES))
    if sign and name != THRESHOLD:
        remedy = "Use --upper-quota, --lower-quota and --ahead." if name == MODEL else ""
        raise OptionError("--policy", f"{name} has no parameters here", text, remedy)
    return name


def _by_threshold(given: dict[str, Any], limits: Limits) -> tuple[Policy, Limits]:
    """The policy with its parameters, and no more instances than these or `--maximum` say."""
    from tidegate.elastic.registry import of
    from tidegate.elastic.threshold import Threshold

    policy = of(given["policy"], "--policy")
    assert isinstance(policy, Threshold)
    if given["maximum"] is None and policy.maximum is not None:
        limits = replace(limits, maximum=policy.maximum)
    return replace(policy, maximum=limits.maximum), limits


def _limits(given: dict[str, Any], policy: str) -> Limits | None:
    own = {
        "maximum": given["maximum"],
        "upper": given["upper_quota"],
        "lower": given["lower_quota"],
    }
    known = {name: value for name, value in own.items() if value is not None}
    if policy != MODEL:
        options = ["upper_quota", "lower_quota", "ahead"]
        for option in options if policy == THRESHOLD else ["maximum", *options]:
            if given[option] is not None:
                raise OptionError(
                    f"--{option.replace('_', '-')}",
                    "is for a policy" if option == "maximum" else f"is for --policy {MODEL}",
                    f"--policy {policy}",
                    f"Give --policy {MODEL}."
                    if policy == FIXED
                    else f"Write for example --policy '{THRESHOLD}?upper=0.8&lower=0.4'.",
                )
    if policy == FIXED:
        return None
    return Limits(**{"maximum": MAXIMUM, **known}, quota=given["quota"])


def _check_files(json_file: str | None, plot_file: str | None) -> None:
    if json_file is not None and json_file != STANDARD_OUTPUT:
        check_target("--json", json_file)
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
    """One record a second; null where something is not defined, as the latency of no tuple."""
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
