"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from tidegate.cli.option.mapping import mapping_text
from tidegate.cli.option.query_text import QueryText, query_argument
from tidegate.cli.option.value import OneOf, Whole
from tidegate.cli.text.answer import Command
from tidegate.driver.options import read_as
from tidegate.elastic.handover import AUTO, HANDOVERS
from tidegate.elastic.owners import owners_of
from tidegate.elastic.request import Switch
from tidegate.errors import OptionError
from tidegate.plan.join.method import OTHER_WORDS, ROUTINGS
from tidegate.plan.options import MAX_WINDOWS, PARTIALS
from tidegate.plan.physical import OPERATOR_SET, STRATEGIES
from tidegate.query.output import Output
from tidegate.route.registry import DEFAULT as DEFAULT_PARTITIONER
from tidegate.session.place import DEFAULT_MASTER
from tidegate.session.script import streams_of
from tidegate.sql.bind import bind

ALL = "all"
"""The value of `explain --strategy` that shows every strategy."""


_OPTIONS = {
    "query": query_argument,
    "--stream": click.option(
        "--stream",
        "streams",
        multiple=True,
        metavar="NAME=URI",
        help="A source of a stream: a file, a folder, a URI such as s3://bucket/folder, "
        "kafka://host:port/topic, generator:NAME, or 'HISTORY THEN kafka://...'. Repeat for "
        "several.",
    ),
    "--time": click.option(
        "--time",
        "times",
        multiple=True,
        metavar="NAME=COLUMN",
        help="The event time column of a stream (default: TIME in the query, else ts).",
    ),
    "--master": click.option(
        "--master",
        metavar="M",
        help="A Spark master URL, or none to run in this process without Spark.  "
        f"[default: that of spark-submit, else {DEFAULT_MASTER}]",
    ),
    "--conf": click.option(
        "--conf",
        "conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting for Spark, for example spark.ui.enabled=true. Repeat for several.",
    ),
    "--instances": click.option(
        "--instances",
        multiple=True,
        metavar="N",
        help="Parallel instances of every subquery (default: the master's cores); "
        "NAME=N for one subquery, as `explain` names them.",
    ),
    "--strategy": click.option(
        "--strategy",
        type=OneOf([*STRATEGIES, ALL]),
        default=OPERATOR_SET,
        show_default=True,
        help="How the query is cut into subqueries; all of them side by side in explain.",
    ),
    "--method": click.option(
        "--method",
        type=OneOf(["auto", "scan"]),
        default="auto",
        show_default=True,
        help="How joins compare: with an index where there is one, or every pair.",
    ),
    "--exchange": click.option(
        "--exchange",
        type=OneOf(["auto", "shared", "shuffle"]),
        default="auto",
        show_default=True,
        help="How tasks exchange tuples: files on one host, a shuffle, or (auto) what fits.",
    ),
    "--handover": click.option(
        "--handover",
        type=OneOf(list(HANDOVERS)),
        default=AUTO,
        show_default=True,
        help="How buckets come to other instances at a switch: as files that all share, by loading "
        "their state, or with the windows that begin next.",
    ),
    "--routing": click.option(
        "--routing",
        type=OneOf(ROUTINGS, OTHER_WORDS),
        default="auto",
        show_default=True,
        help="How joins place tuples: by their key, by ranges of the value that an index compares, "
        "or evenly, round-robin.",
    ),
    "--partitioner": click.option(
        "--partitioner",
        metavar="NAME",
        help="Who chooses where the tuples of aggregates go: hash, shuffle, pk, cm, am, cam or lm, "
        "with parameters as in pk?d=3, or auto, which chooses for each window. An aggregate may "
        f"name its own.  [default: {DEFAULT_PARTITIONER}; standby with a latency target]",
    ),
    "--partial": click.option(
        "--partial",
        type=OneOf(list(PARTIALS)),
        default=AUTO,
        show_default=True,
        help="Where tuples become partial results: in map tasks, or in the instances that tuples "
        "are then sent to.",
    ),
    "--max-windows-per-tuple": click.option(
        "--max-windows-per-tuple",
        type=Whole(),
        default=MAX_WINDOWS,
        show_default=True,
        metavar="N",
        help="Refuse windows of time that overlap so much that a tuple is in more.",
    ),
}


def query_options(command: Command) -> Command:
    """Adds the arguments for the query, its data, and where it runs."""
    return options(*_OPTIONS)(command)


def options(*names: str) -> Callable[[Command], Command]:
    """Adds some of these arguments, by name."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return decorate


policy_option = click.option(
    "--policy",
    metavar="fixed|threshold|model|auto",
    help="Who decides about instances: you, thresholds of their utilisation, a model of what the "
    "rates of live input mean, or a latency target, as in 'auto?latency=2&error=0.1&cost=8'. "
    "[default: fixed, or that of WITH LATENCY]",
)


def pairs(
    option: str, values: Sequence[str], shape: str, empty: bool = False
) -> list[tuple[str, str]]:
    """Reads repeated NAME=VALUE options; `empty` allows empty values."""
    found = []
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not (value.strip() or empty):
            raise OptionError(option, f"must look like {shape}", text)
        found.append((name.strip(), value.strip()))
    return found


def settings(values: Sequence[str]) -> dict[str, str]:
    """Reads repeated --conf KEY=VALUE; as in spark-submit, the last value of a key counts."""
    shape = "KEY=VALUE, for example spark.executor.memory=4g"
    return dict(pairs("--conf", values, shape, empty=True))


@dataclass(frozen=True)
class InstanceOptions:
    """Numbers of instances: for all subqueries, and for some by name."""

    instances: int | None
    switches: dict[int, int]
    subquery_instances: dict[str, int]
    subquery_switches: dict[str, dict[int, int]]


def asked_instances(instances: Sequence[str], switches: Sequence[str]) -> InstanceOptions:
    """Reads repeated N or NAME=N, and repeated BATCH=N or NAME:BATCH=N."""
    asked = InstanceOptions(None, {}, {}, {})
    for text in instances:
        name, sign, value = text.rpartition("=")
        number = _whole(value, "--instances", "must be a whole number, or NAME=N", text)
        if sign and not name:
            raise OptionError("--instances", "must be a whole number, or NAME=N", text)
        if name in asked.subquery_instances:
            raise OptionError("--instances", "a subquery can be named once", f"{name} twice")
        if not sign and asked.instances is not None:
            raise OptionError(
                "--instances", "one number is possible", f"{asked.instances} and {number}"
            )
        if sign:
            asked.subquery_instances[name] = number
        else:
            asked = replace(asked, instances=number)
    shape = "BATCH=N, for example 3=4"
    for when, value in pairs("--switch", switches, shape):
        name, sign, text = when.rpartition(":")
        written = f"{when}={value}"
        batch = _whole(text, "--switch", f"must look like {shape}", written)
        number = _whole(value, "--switch", f"must look like {shape}", written)
        if sign and not name:
            raise OptionError("--switch", f"must look like {shape}", written)
        into = asked.subquery_switches.setdefault(name, {}) if sign else asked.switches
        if batch in into:
            of = f"{name}:{batch}" if sign else str(batch)
            raise OptionError(
                "--switch", "a batch can be named once", f"{of} twice", f"Keep one {of}=N."
            )
        into[batch] = number
    return asked


def asked_mapping(given: str | None) -> Switch | None:
    """The mapping of --mapping; None without it."""
    if given is None:
        return None
    with read_as("--mapping"):
        return Switch(*owners_of(mapping_text(given, "--mapping")))


def refuse_all(strategy: str, command: str) -> None:
    """Raises for `all` in a command that runs a query, which needs one strategy."""
    if strategy == ALL:
        raise OptionError(
            "--strategy",
            f"`{command}` takes one of {', '.join(STRATEGIES)}",
            ALL,
            "`tidegate explain --strategy all` compares them.",
        )


def _whole(text: str, option: str, requirement: str, written: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(option, requirement, written) from None


def stream_options(
    streams: Sequence[str], times: Sequence[str]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The addresses and the time columns of streams, by stream name."""
    uris: dict[str, list[str]] = {}
    for name, uri in pairs("--stream", streams, "NAME=URI, for example rides=rides.csv"):
        uris.setdefault(name, []).append(uri)
    return uris, dict(pairs("--time", times, "NAME=COLUMN, for example rides=ts"))


def read_query(
    query: QueryText, streams: Sequence[str], times: Sequence[str]
) -> tuple[Output, ...]:
    """The outputs of a script, with the stream options applied."""
    script = query.script()
    uris, columns = stream_options(streams, times)
    return bind(script, streams_of(script, uris=uris, times=columns))
