"""`tidegate plan`: proposes numbers of instances for each subquery."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

import click

from tidegate.cli.command.rate_plan import RateTarget, SizedQuery, for_rates
from tidegate.cli.command.sustainable import counts_up_to, searched
from tidegate.cli.option.option import options, read_query, refuse_all
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.option.value import Whole
from tidegate.cli.program_name import called_as
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.driver.metric.text import number_text
from tidegate.driver.options import DEFAULT_BATCH_ROWS, DEFAULT_BUCKETS
from tidegate.errors import OptionError
from tidegate.model.sizing.calibration_file import QueryCalibration, read_calibration
from tidegate.model.speed_up import SpeedUp
from tidegate.plan.explain import many, table
from tidegate.plan.join.method import AUTO, JoinOptions
from tidegate.plan.options import MAX_WINDOWS, PlanOptions
from tidegate.plan.physical import OPERATOR_SET, QUERY_CLOUD, Plan
from tidegate.plan.strategy import proposed
from tidegate.session.calibration.calibrate import calibrate, check_calibration
from tidegate.session.calibration.sample_run import DEFAULT_ROWS, SampleLoad, SampleRun, sample_run
from tidegate.session.calibration.sustain import DEFAULT_SECONDS, DEFAULT_WITHIN_S, SustainSetup
from tidegate.session.options import seconds_of
from tidegate.session.place import DEFAULT_MASTER, Place
from tidegate.session.planning import plan_for


@click.command()
@options(
    "query",
    "--stream",
    "--time",
    "--master",
    "--strategy",
    "--method",
    "--routing",
    "--max-windows-per-tuple",
)
@click.option(
    "--instances",
    type=Whole(least=1),
    default=None,
    metavar="N",
    help="Instances of all subqueries together, at most (default: the master's cores for each).",
)
@click.option(
    "--sample",
    type=Whole(least=1),
    is_flag=False,
    flag_value=DEFAULT_ROWS,
    default=DEFAULT_ROWS,
    show_default=True,
    metavar="ROWS",
    help="Rows to run, of all streams together, in time order.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="RATE",
    help="Tuples a second of every stream, or NAME=RATE of one: plan for these by the model.",
)
@click.option(
    "--latency",
    metavar="TIME",
    help="With --rate: from arrival to commit, on average, at most so long, as '200 ms'.",
)
@click.option(
    "--trigger",
    metavar="TIME",
    help="With --rate: least time between the starts of batches, as '1 second'.",
)
@click.option(
    "--calibration",
    metavar="FILE",
    help="With --rate: what `tidegate calibrate` has measured, instead of measuring now.",
)
@click.option(
    "--sustainable",
    is_flag=True,
    help="Measure the highest rate that 1, 2, 4, ... instances sustain, up to --instances.",
)
@click.option(
    "--seconds",
    type=Whole(least=1),
    default=None,
    metavar="S",
    help="With --sustainable: how long each rate is tried (default: 5).",
)
@answers
def plan(
    query: QueryText,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str | None,
    strategy: str,
    method: str,
    routing: str,
    max_windows_per_tuple: int,
    instances: int | None,
    sample: int,
    rates: tuple[str, ...],
    latency: str | None,
    trigger: str | None,
    calibration: str | None,
    sustainable: bool,
    seconds: int | None,
) -> CommandAnswer:
    """Run the first rows of QUERY.sql and propose how many instances each subquery should have.

    The sample runs in this process, its results and state are thrown away. A subquery gets
    instances in proportion to the processor time that it used, and no more than the master has
    cores: subqueries that take rows of each other run in turn, so that each has them all. Nor does
    it get more than pay: where much of a batch is serial, most instances would wait.

    With --rate it says how many instances the query needs at these rates, by a model of what
    everything in it costs: from a calibration, or measured now where the query is to run.

    With --sustainable it measures, where the query is to run, the highest rate at which 99 of 100
    tuples are answered within --latency, 1 second unless given: for 1, 2, 4, ... instances. The
    input is taken as if it arrived at a rate, and several rates are tried.
    """
    refuse_all(strategy, "tidegate plan")
    asked_for = {"latency": latency, "trigger": trigger, "calibration": calibration}
    _check_modes(sustainable, bool(rates), **asked_for, seconds=seconds)
    place = Place.at(master)
    outputs = read_query(query, streams, times)
    planning = PlanOptions(
        JoinOptions(method, routing), strategy, max_windows=max_windows_per_tuple
    )
    planned = plan_for(outputs, place, planning)
    if sustainable:
        within_s = DEFAULT_WITHIN_S if latency is None else seconds_of(latency, "--latency")
        setup = SustainSetup(planned, place, seconds or DEFAULT_SECONDS, within_s)
        return searched(setup, counts_up_to(instances or place.default_instances()))
    names = [s.name for s in planned.subqueries]
    one_number = strategy == QUERY_CLOUD
    cores = place.cores()
    total = instances or place.default_instances() * (1 if one_number else len(names))
    if not one_number:
        _check_total(total, len(names))
    if rates:
        target = RateTarget.of(rates, latency, trigger, planned)
        known = _known(calibration, planned, place, sample, query.written)
        sized = for_rates(known, planned, place, target, total, alike=one_number)
    else:
        sized = _for_sample(planned, sample, total, bool(instances), one_number, cores)
    counts = sized.counts
    asked = (
        [str(counts[0])] if one_number else [f"{n}={c}" for n, c in zip(names, counts, strict=True)]
    )
    given = [
        *(w for text in streams for w in ("--stream", text)),
        *(w for text in times for w in ("--time", text)),
        *_changed("--master", master or DEFAULT_MASTER, DEFAULT_MASTER),
        *_planned_as(strategy, method, routing, max_windows_per_tuple),
        *_changed("--buckets", str(_buckets(counts)), str(DEFAULT_BUCKETS)),
        *(["--out", "results"] if len(outputs) > 1 else []),
        *([] if trigger is None else ["--trigger", trigger]),
        *(w for text in asked for w in ("--instances", text)),
    ]
    command = ["run", *query.words, *given]
    each = dict(zip(names, counts * len(names) if one_number else counts, strict=True))
    return CommandAnswer(
        {**sized.facts, "instances": each, "command": ["tidegate", *command]},
        lambda: "\n".join([*sized.lines, f"  {called_as()} {shlex.join(command)}"]),
    )


def _check_total(total: int, subqueries: int) -> None:
    """Raises for fewer instances than subqueries."""
    if total < subqueries:
        raise OptionError(
            "--instances",
            f"must be at least one for each of the {subqueries} subqueries",
            str(total),
            f"Give more, or --strategy {QUERY_CLOUD}, which has them all on the same instances.",
        )


def _check_modes(sustainable: bool, rates: bool, **given: object) -> None:
    """Raises for options that this way of planning does not use."""
    if sustainable and rates:
        raise OptionError(
            "--sustainable",
            "cannot be used with --rate",
            "both",
            "Leave --rate out: the highest rate is what is searched for.",
        )
    for name, value in given.items():
        option = f"--{name}"
        if value is None:
            continue
        if sustainable and name in ("trigger", "calibration"):
            remedy = f"Leave {option} out: rates are measured."
            raise OptionError(option, "cannot be used with --sustainable", "both", remedy)
        if name == "seconds" and not sustainable:
            raise OptionError(option, "needs --sustainable", "none", f"Add it, or drop {option}.")
        if not sustainable and not rates:
            remedy = "Say how many tuples come in a second."
            raise OptionError(option, "needs --rate", "none", remedy)


def _for_sample(
    planned: Plan, sample: int, total: int, bounded: bool, one_number: bool, cores: int | None
) -> SizedQuery:
    """What a sample shows, and instances by each subquery's processor time."""
    found = sample_run(planned, sample)
    shares = [total] if one_number else proposed([load.cpu_us for load in found.loads], total)
    counts = bounded_by(found.speed_up, shares, cores)
    capped = bounded and counts != shares
    lines = [*_table(found), *limits(found.speed_up, len(planned.subqueries), cores, capped)]
    lines.append(f"proposed: {many(sum(counts), 'instance')}")
    facts = {
        "rows": found.rows,
        "batches": found.batches,
        "loads": {load.subquery: _load_facts(load) for load in found.loads},
        "serial_share": found.speed_up.serial_share,
        "useful_instances": found.speed_up.useful,
    }
    return SizedQuery(lines, counts, facts)


def _load_facts(load: SampleLoad) -> dict[str, Any]:
    return {"tuples": load.tuples, "cpu_us": load.cpu_us, "us_per_tuple": load.cost_us}


def bounded_by(found: SpeedUp, shares: Sequence[int], cores: int | None) -> list[int]:
    """Caps each subquery's instances at the cores and at the number that still pays."""
    most = min(found.useful, cores or math.inf)
    return [int(min(share, most)) for share in shares]


def _known(
    calibration: str | None, planned: Plan, place: Place, sample: int, title: str
) -> QueryCalibration:
    """The cost constants: from a file, or measured now."""
    if calibration is None:
        return calibrate(planned, place, sample, title=title)
    known = read_calibration(calibration)
    check_calibration(known, planned, "--calibration")
    return known


def limits(found: SpeedUp, subqueries: int, cores: int | None, capped: bool) -> list[str]:
    """What limits the useful number of instances."""
    lines = []
    if subqueries > 1:
        lines.append("subqueries that follow each other run in turn, so each can use all cores")
    if found.serial_share:
        lines.append(
            f"{number_text(found.serial_share, 'share')} of a batch of {DEFAULT_BATCH_ROWS:,} rows "
            f"is serial: more instances are at most {found.limit:,.1f} times as fast"
        )
    if found.useful < (cores or math.inf):
        lines.append(f"more than {many(int(found.useful), 'instance')} of a subquery do not pay")
    elif capped and cores is not None:
        lines.append(f"more instances of a subquery than the {many(cores, 'core')} do not help")
    return lines


def _table(found: SampleRun) -> list[str]:
    batches = f"{found.batches} batch{'' if found.batches == 1 else 'es'}"
    whole = sum(load.cpu_us for load in found.loads)
    rows = [("subquery", "tuples in", "us per tuple", "share")]
    for load in found.loads:
        cost = f"{load.cost_us:,.2f}" if load.tuples else "-"
        rows.append((load.subquery, f"{load.tuples:,}", cost, f"{load.cpu_us / whole:.0%}"))
    lines = [f"sample of {found.rows:,} rows in {batches}, one instance of each subquery"]
    lines += [f"  {line}" for line in table(rows)]
    return [*lines, *_doubts(found.loads)]


def _doubts(loads: Sequence[SampleLoad]) -> list[str]:
    """What the sample is too short to show."""
    idle = [load.subquery for load in loads if not load.tuples]
    return [f"  no tuple came to {', '.join(idle)}: a larger --sample says more"] if idle else []


def _planned_as(strategy: str, method: str, routing: str, max_windows: int) -> list[str]:
    """The planning options that differ from the defaults."""
    return [
        *_changed("--strategy", strategy, OPERATOR_SET),
        *_changed("--method", method, AUTO),
        *_changed("--routing", routing, AUTO),
        *_changed("--max-windows-per-tuple", str(max_windows), str(MAX_WINDOWS)),
    ]


def _changed(option: str, value: str, default: str) -> list[str]:
    return [] if value == default else [option, value]


def _buckets(counts: Sequence[int]) -> int:
    """The default number, or the next power of two if there are more instances."""
    return max(DEFAULT_BUCKETS, 1 << (max(counts) - 1).bit_length())
