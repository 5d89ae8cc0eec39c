"""`tidegate run`: runs a query from a file, to the end of its input or following it."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.line import FORMATS, TEXT, log_to_stderr, say, say_summary, use
from tidegate.cli.live.page_address import tell_page
from tidegate.cli.live.watch import run_until_signal, view_of
from tidegate.cli.option.option import (
    asked_instances,
    asked_mapping,
    policy_option,
    query_options,
    read_query,
    refuse_all,
    settings,
    stream_options,
)
from tidegate.cli.option.out import address_of, beside_view, side_places, sinks_of
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.option.target import check_target
from tidegate.cli.option.value import OneOf, PathText, SizeType, Whole
from tidegate.cli.stop import EXIT_STOPPED, Stopped
from tidegate.driver.lineage.options import LineageOptions, lineage_options
from tidegate.driver.loop import Loop
from tidegate.driver.options import DEFAULT_BATCH_ROWS, DEFAULT_BUCKETS, RunOptions
from tidegate.driver.report.metrics import Summary
from tidegate.errors import OptionError, SinkError
from tidegate.json_text import json_text
from tidegate.memory import Allowance
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.query.output import Output
from tidegate.remote.scheme import is_remote_uri
from tidegate.session.dashboard import ServedPage
from tidegate.session.launch import prepare
from tidegate.session.options import checkpoint_options, policy_of, seconds_of
from tidegate.session.place import EXECUTIONS, Place
from tidegate.session.planning import plan_for
from tidegate.session.reach import reachable
from tidegate.session.recorded_script import RecordedScript
from tidegate.sink.address import FILE, Address
from tidegate.sink.protocol import Sink
from tidegate.sink.terminal import drawable

if TYPE_CHECKING:
    from tidegate.cli.live.view import LiveView


@click.command()
@query_options
@click.option(
    "--out",
    type=PathText(),
    metavar="URI",
    help="Where results go: a folder, as a path or a URI (file:///path, s3://bucket/path, gs://, "
    "abfs://, hdfs://), gets one folder per batch; postgresql://user@host:port/db?table=t: rows; "
    "console: shows the newest window in the live view, or prints all rows as CSV when standard "
    "output is no terminal.  [default: console:]",
)
@click.option(
    "--format",
    "format_",
    metavar="parquet|csv|json|avro",
    help="Format of results in files (parquet, csv, json) or topics (json, csv, avro); --out "
    "'DIR?format=csv' says the same. JSON has no NaN and no "
    "infinities: they end the run, or are texts with --out 'DIR?format=json&nonfinite=text'.  "
    "[default: parquet, in topics json]",
)
@click.option(
    "--checkpoint",
    type=PathText(),
    metavar="DIR",
    help="Where the state is kept, a folder or a URI as of --out; with it a run continues after a "
    "crash (default: not kept).",
)
@click.option(
    "--keep",
    metavar="TIME",
    help="Keep the states of earlier batches for so long, for example '24 hours', to run batches "
    "again and to look at the state of a time (docs/replay.md). Needs --checkpoint.",
)
@click.option(
    "--sign",
    type=PathText(),
    metavar="KEY",
    help="Sign each batch, for others to check with the public key alone: a PEM file with an "
    "Ed25519 private key (docs/signing.md). Needs --checkpoint.",
)
@click.option(
    "--start-empty",
    is_flag=True,
    help="With a changed query: aggregates, functions and joins of which the checkpoint has no "
    "state begin with the next tuples.",
)
@click.option(
    "--buckets",
    type=Whole(),
    default=DEFAULT_BUCKETS,
    show_default=True,
    metavar="B",
    help="Buckets of state, fixed for the life of a checkpoint.",
)
@click.option(
    "--batch-rows",
    type=Whole(),
    metavar="N",
    help="Rows per batch, of all streams together, in time order (default: "
    f"{DEFAULT_BATCH_ROWS:,}, and fewer where each gives many rows).",
)
@click.option(
    "--switch",
    "switch",
    multiple=True,
    metavar="BATCH=N",
    help="Ask for N instances from a batch on, NAME:BATCH=N for one subquery. Repeat for several.",
)
@click.option(
    "--mapping",
    metavar="FILE_OR_JSON",
    help="Which instance has which bucket when the run begins, instead of --instances: the owner "
    'of each, as [0, 0, 1, 1], or the buckets of each instance, as {"0": "0-31", ...}.',
)
@policy_option
@click.option(
    "--execution",
    type=OneOf(list(EXECUTIONS)),
    default="auto",
    show_default=True,
    help="How tasks run on Spark: in one job of tasks that stay, or in jobs of each batch.",
)
@click.option(
    "--follow", is_flag=True, help="Go on when the input is read: wait for new files and rows."
)
@click.option(
    "--available-now",
    is_flag=True,
    help="Take all there is, leave windows open and end; the next run takes what is new.",
)
@click.option(
    "--trigger",
    metavar="TIME",
    help="Least time between the starts of batches, for example '1 second' (default: a batch "
    "starts when there is input).",
)
@click.option(
    "--summary",
    metavar="FILE",
    help="Write the summary as JSON; docs/figures.md defines every figure.",
)
@click.option(
    "--lineage",
    metavar="URL|FILE",
    help="Where OpenLineage events go: a server, http://host:5000, or a file that gets one on each "
    "line. The key of a server is in OPENLINEAGE_API_KEY.",
)
@click.option(
    "--lineage-every",
    metavar="TIME",
    help="Least time between two events of a run that goes on.  [default: 10 minutes]",
)
@click.option(
    "--dashboard",
    is_flag=False,
    flag_value="0",
    default=None,
    metavar="[PORT]",
    help="Show the query in a browser, at a port of this host, or at HOST:PORT; without one at any "
    "that is free, which is told.",
)
@click.option(
    "--log",
    type=OneOf(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    expose_value=False,
    callback=lambda context, parameter, value: log_to_stderr(value),
    help="What is logged to standard error.",
)
@click.option(
    "--log-format",
    type=OneOf(FORMATS),
    default=TEXT,
    show_default=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, parameter, value: use(value),
    help="How lines on standard error are written: for people, or each as a JSON object.",
)
@click.option(
    "--memory-limit",
    type=SizeType(),
    metavar="SIZE",
    help="What each Python process of the run may hold, for example 2GB; caches take a third of "
    "it (default: all together three quarters of the machine or container).",
)
def run(
    query: QueryText,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    instances: tuple[str, ...],
    strategy: str,
    method: str,
    exchange: str,
    handover: str,
    routing: str,
    partitioner: str | None,
    partial: str,
    max_windows_per_tuple: int,
    out: str | None,
    format_: str | None,
    checkpoint: str | None,
    keep: str | None,
    sign: str | None,
    start_empty: bool,
    buckets: int,
    batch_rows: int | None,
    switch: tuple[str, ...],
    mapping: str | None,
    policy: str | None,
    execution: str,
    follow: bool,
    available_now: bool,
    trigger: str | None,
    summary: str | None,
    lineage: str | None,
    lineage_every: str | None,
    dashboard: str | None,
    memory_limit: int | None,
) -> None:
    """Run the query in QUERY.sql over its streams.

    A run takes all there is, finishes every window and ends; its checkpoint is finished then. With
    --available-now windows stay open, and the same command goes on with what is new; with --follow
    the run waits for it. Ctrl-C ends it after the running batch, a second one at once. A terminal
    shows rates, event-time lag, batch times, state, instances and the newest window meanwhile.
    """
    refuse_all(strategy, "tidegate run")
    options = RunOptions(
        **vars(asked_instances(instances, switch)),
        buckets=buckets,
        batch_rows=batch_rows,
        follow=follow,
        available_now=available_now,
        trigger_s=None if trigger is None else seconds_of(trigger, "--trigger"),
        memory=Allowance.of(memory_limit),
        handover=handover,
        mapping=asked_mapping(mapping),
        start_empty=start_empty,
        **checkpoint_options(checkpoint, keep, sign, "--"),
    )
    options.memory.take()  # streams are looked at before there is a loop
    place = Place.at(master, None, exchange, settings(conf), execution).titled(query.title)
    address = address_of(out, format_)
    check_places(query.path, address, checkpoint, summary)
    join = JoinOptions(method, routing, buckets)
    planning = PlanOptions(join, strategy, partitioner, max_windows_per_tuple, partial)
    outputs = read_query(query, streams, times)
    options = replace(options, policy=policy_of(policy, outputs, "--policy"))
    plan = _told_of_unread(streams, plan_for(outputs, place, planning))
    view = view_of(drawable(sys.stdout), query.stem, plan, place)
    with ServedPage(dashboard or False, "--dashboard") as page:
        loop = prepare(
            plan,
            place,
            _sinks(outputs, address, view),
            options,
            checkpoint,
            **_shown_by(view),
            lineage=_lineage(query, lineage, lineage_every),
            script=_recorded(query, streams, times).planned_with(planning),
        )
        tell_page(page.show(loop, query.stem))
    _run_to_its_end(loop, view, checkpoint, address, summary, options=options)


def _told_of_unread(streams: Sequence[str], plan: Plan) -> Plan:
    """The plan; says which --stream it does not read, as one with a name that is misspelt."""
    read = {
        name.lower() for name in (*(s.name for s in plan.streams), *(t.name for t in plan.tables))
    }
    for name in stream_options(streams, ())[0]:
        if name.lower() not in read:
            say(f"--stream {name}: the query does not read a stream of this name", logging.WARNING)
    return plan


def _tell_unreached(options: RunOptions, batches: int) -> None:
    """Say which --switch was for a batch that did not come."""
    asked = {*options.switches, *(b for of in options.subquery_switches.values() for b in of)}
    for batch in sorted(b for b in asked if b >= batches):
        say(
            f"--switch: batch {batch} did not come; the last one was {batches - 1}", logging.WARNING
        )


def _lineage(query: QueryText, lineage: str | None, every: str | None) -> LineageOptions | None:
    """Where the events of a run go, with the text of its query."""
    told = lineage_options(lineage, every, "--lineage", query.stem)
    return told and replace(told, sql=query.read())


def _sinks(
    outputs: Sequence[Output], address: Address, view: LiveView | None
) -> dict[str | None, Sink]:
    sinks = sinks_of([output.name for output in outputs], address, viewed=view is not None)
    return sinks if view is None else beside_view(sinks, address)


def _recorded(query: QueryText, streams: tuple[str, ...], times: tuple[str, ...]) -> RecordedScript:
    """What the checkpoint records about the query."""
    uris, columns = stream_options(streams, times)
    return RecordedScript(query.read(), streams=uris, times=columns)


def _shown_by(view: LiveView | None) -> dict[str, Any]:
    """A run's callbacks for a live view."""
    if view is None:
        return {}
    return {
        "on_batch": view.batch,
        "on_rows": lambda name, rows: view.rows(rows, name),
        "observer": view.step,
    }


def _run_to_its_end(
    loop: Loop,
    view: LiveView | None,
    checkpoint: str | None,
    out: Address,
    summary: str | None,
    *,
    options: RunOptions,
) -> None:
    """Runs the batches, prints what was done, and how to continue if a signal stopped it."""
    if checkpoint is not None:
        reachable(loop)
    loop.summary.places = side_places(out)
    if loop.manifest.finished:
        say(f"{checkpoint} is finished already, and there is no new input.")
    gc.freeze()  # what has been imported stays; it need not be looked through again and again
    try:
        done = run_until_signal(loop, view)
    except Stopped as stopped:
        report(stopped.summary, summary)
        say(how_to_continue(checkpoint, out), title="")
        raise click.exceptions.Exit(EXIT_STOPPED) from None
    report(done, summary)
    _tell_unreached(options, loop.manifest.batch + 1)


def how_to_continue(checkpoint: str | None, out: Address) -> str:
    """What to do after a run was stopped."""
    if checkpoint is not None:
        return "Run the same command to continue."
    other = (
        " It needs another --out, or this one without its results." if out.scheme == FILE else ""
    )
    return f"Without --checkpoint it cannot be continued: another run begins anew.{other}"


def check_places(
    query: Path | None, out: Address, checkpoint: str | None, summary: str | None
) -> None:
    """Raises, before anything starts, if output would overwrite something or has no place."""
    folder = Path(out.place).resolve() if out.scheme == FILE else None
    same = checkpoint and (folder == Path(checkpoint).resolve() or _is_of(checkpoint, out))
    if checkpoint and same:
        raise OptionError(
            "--checkpoint",
            "must be another folder than --out",
            checkpoint,
            "Choose one of its own.",
        )
    if summary is None:
        return
    place = Path(summary)
    if place.is_dir():
        raise OptionError("--summary", "must be a file", f"the folder {summary}", "Add a name.")
    if not place.absolute().parent.is_dir():
        got = f"no folder {place.parent}"
        raise OptionError("--summary", "must be in a folder that exists", got, "Make it first.")
    if not place.exists():  # one that is there may be a pipe, in a folder of others
        check_target("--summary", summary)
    if query is not None and place.resolve() == query.resolve():
        raise OptionError(
            "--summary", "must be another file than the query", summary, "Choose another name."
        )


def _is_of(checkpoint: str, out: Address) -> bool:
    """Whether a checkpoint on another file system is the output folder itself."""
    place = checkpoint.partition("?")[0].rstrip("/")
    return is_remote_uri(checkpoint) and place == f"{out.scheme}:{out.place}".rstrip("/")


def report(summary: Summary, path: str | None) -> None:
    """Prints what was done to standard error, and writes it as JSON."""
    say_summary(summary)
    if path is not None:
        text = json_text(summary.as_dict(), indent=2)
        try:
            Path(path).write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            got = error.strerror or str(error)
            remedy = "The run is not touched by it: what was committed stands."
            raise SinkError(path, "the summary must be written", got, remedy) from error
