"""`tidegate calibrate`: measures what batches, tuples and comparisons of a query cost here."""

from __future__ import annotations

import json

import click

from tidegate.cli.option.option import options, read_query, refuse_all, settings
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.option.target import write_target
from tidegate.cli.option.value import Whole
from tidegate.cli.text.answer import JSON, STANDARD_OUTPUT, check_json_file, json_file_option
from tidegate.cli.text.calibration import calibration_lines
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.session.calibration.calibrate import DEFAULT_ROWS
from tidegate.session.calibration.calibrate import calibrate as measure
from tidegate.session.place import Place
from tidegate.session.planning import plan_for


class QueryAfterJson(click.Command):
    """A command whose bare `--json` prints to standard output if the next word is the query."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = self.make_parser(ctx).parse_args(list(args))[0]
        if not any(isinstance(given.get(name), str | list) for name in ("query", "statements")):
            args = [f"{JSON}={STANDARD_OUTPUT}" if word == JSON else word for word in args]
        return super().parse_args(ctx, args)


@click.command(cls=QueryAfterJson)
@options(
    "query",
    "--stream",
    "--time",
    "--master",
    "--conf",
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
    help="Parallel instances of every subquery (default: the master's cores).",
)
@click.option(
    "--rows",
    type=Whole(least=1),
    default=DEFAULT_ROWS,
    show_default=True,
    metavar="N",
    help="Rows to run, of all streams together, in time order.",
)
@json_file_option("Write what was measured as JSON, for --calibration of other commands")
def calibrate(
    query: QueryText,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str | None,
    conf: tuple[str, ...],
    strategy: str,
    method: str,
    routing: str,
    max_windows_per_tuple: int,
    instances: int | None,
    rows: int,
    json_file: str | None,
) -> None:
    """Run the first rows of QUERY.sql in batches of many sizes and tell what everything costs.

    The rows run where the query is to run; their results and state are thrown away. Every constant
    comes with the interval that has it 95 times in 100.
    """
    refuse_all(strategy, "tidegate calibrate")
    check_json_file(json_file)
    place = Place.at(master, conf=settings(conf))
    planning = PlanOptions(
        JoinOptions(method, routing), strategy, max_windows=max_windows_per_tuple
    )
    planned = plan_for(read_query(query, streams, times), place, planning)
    found = measure(planned, place, rows, instances, query.written)
    facts = json.dumps(found.recorded(), indent=1)
    if json_file == STANDARD_OUTPUT:
        click.echo(facts)
        return
    for line in calibration_lines(found):
        click.echo(line)
    if json_file is not None:
        write_target(json_file, facts.encode() + b"\n")
        click.echo(f"written to {json_file}")
