"""`tidegate compare`: runs two queries over the same input and lists rows that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from tidegate.cli.command.shadow import ShadowQuery
from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.live.watch import run_until_signal
from tidegate.cli.option.option import options, read_query, settings
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.option.value import PathText, SizeType, Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.driver.options import RunOptions
from tidegate.errors import OptionError
from tidegate.json_text import json_text
from tidegate.memory import Allowance
from tidegate.session.place import NO_SPARK, Place
from tidegate.session.planning import plan_for
from tidegate.session.verification.compare import ComparedOutput, ComparedQueries, compare_queries
from tidegate.session.verification.row_difference import RowDifference
from tidegate.session.verification.shadow import ShadowFacts
from tidegate.state.inspect import frontier_text
from tidegate.state.store import Store


@click.command()
@click.argument("old", type=PathText(), metavar="OLD.sql|CHECKPOINT")
@click.argument("new", type=PathText(), metavar="NEW.sql")
@options("--stream", "--time")
@click.option(
    "--master",
    metavar="M",
    default=NO_SPARK,
    show_default=True,
    help="A Spark master URL, or none to run in this process without Spark.",
)
@options("--conf")
@click.option("--batch-rows", type=Whole(), metavar="N", help="Rows per batch, as of `run`.")
@click.option(
    "--memory-limit",
    type=SizeType(),
    metavar="SIZE",
    help="What each Python process may hold, as of `run`.",
)
@click.option(
    "--most",
    type=Whole(least=0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many differing rows of each output are listed; all are counted.",
)
@click.option(
    "--cutover",
    type=PathText(),
    metavar="DIR",
    help="Of a CHECKPOINT: switch it over to NEW.sql, after its newest batch. The state of the old "
    "query is kept in DIR, to go back to.",
)
@click.option(
    "--begin",
    type=PathText(),
    metavar="DIR",
    help="Of a CHECKPOINT: begin with the state of NEW.sql that an earlier --cutover has kept in "
    "DIR, not with the sources.",
)
@answers
def compare(
    old: str,
    new: str,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str,
    conf: tuple[str, ...],
    batch_rows: int | None,
    memory_limit: int | None,
    most: int,
    cutover: str | None,
    begin: str | None,
) -> CommandAnswer:
    """Run OLD.sql and NEW.sql over the same input, and list the rows that differ.

    Exit code 0: the outputs are equal, row by row and in their order. 1: they differ. Changed
    columns are told first; those of the same name and type are then compared. Nothing but a
    temporary folder is written. Of a CHECKPOINT its published rows are compared with those of
    NEW.sql, up to the watermark that it has reached; with --cutover exit code 0 says that it was
    switched over.
    """
    if not Path(old).is_file() and Store.open(old).meta() is not None:
        if master != NO_SPARK or conf:
            got, remedy = "--master or --conf", "Leave them out: NEW.sql runs in this process."
            raise OptionError("compare", "takes none of these with a checkpoint", got, remedy)
        given = ShadowQuery(QueryText.of_file(new), streams, times, begin, cutover)
        limits = RunOptions(batch_rows=batch_rows, memory=Allowance.of(memory_limit))
        with given.beside(old, limits) as shadow:
            facts = given.facts(shadow, most)
        code = 0 if facts.equal or facts.switched else EXIT_FAILED
        return CommandAnswer(facts.as_dict(), lambda: "\n".join(_shadow_lines(facts)), code=code)
    for option, value in (("--cutover", cutover), ("--begin", begin)):
        if value is not None:
            got, remedy = old, "Give the checkpoint of a run in place of OLD.sql."
            raise OptionError(option, "needs a checkpoint that is compared", got, remedy)
    limits = RunOptions(batch_rows=batch_rows, memory=Allowance.of(memory_limit))
    limits.memory.take()  # streams are looked at before there is a loop
    place = Place.at(master, conf=settings(conf))
    before, after = (
        plan_for(read_query(QueryText.of_file(name), streams, times), place) for name in (old, new)
    )
    found = compare_queries(before, after, place, limits, most=most, run=run_until_signal)
    code = 0 if found.equal else EXIT_FAILED
    return CommandAnswer(found.as_dict(), lambda: "\n".join(_lines(found)), code=code)


def _lines(found: ComparedQueries) -> Iterator[str]:
    for name, (before, after) in found.inputs.items():
        yield f"other input: {name} is {', '.join(before)} in old and {', '.join(after)} in new"
    for kind, names in (("old", found.removed), ("new", found.added)):
        if names:
            yield f"outputs only in {kind}: {', '.join(names)}"
    for output in found.outputs:
        yield from _output_lines(output)


def _shadow_lines(facts: ShadowFacts) -> Iterator[str]:
    if facts.first is None:
        yield f"not compared: {facts.reason}"
    else:
        watermark = frontier_text(facts.frontier_us)
        yield f"batches {facts.first} to {facts.batch}, watermark {watermark}"
    for output in facts.outputs:
        yield from _output_lines(output)
    if facts.switched:
        yield f"switched: from batch {facts.batch + 1} on it is the checkpoint of the new query"


def _output_lines(output: ComparedOutput) -> Iterator[str]:
    title = "" if output.name is None else f"{output.name}: "
    if output.equal:
        yield f"{title}equal, {row_count(output.rows[0])}"
        return
    old, new = output.rows
    yield f"{title}different, {row_count(old)} in old and {new:,} in new"
    for word, columns in (("removed", output.removed), ("added", output.added)):
        for name, type_ in columns.items():
            yield f"  column {word}: {name} {type_}"
    for name, (before, after) in output.retyped.items():
        yield f"  column retyped: {name} {before} to {after}"
    counts = {kind: count for kind, count in output.log.counts.items() if count}
    if not counts:
        yield "  the other columns are equal in all rows"
        return
    yield f"  rows: {', '.join(f'{count:,} {kind}' for kind, count in counts.items())}"
    if output.log.columns:
        changed = (f"{name} in {row_count(count)}" for name, count in output.log.columns.items())
        yield f"  changed: {', '.join(changed)}"
    for difference in output.log.listed:
        yield f"  {difference_line(difference)}"
    left = sum(counts.values()) - len(output.log.listed)
    if left:
        yield f"  and {left:,} more; --most lists more of them"


def difference_line(difference: RowDifference, sides_are: tuple[str, str] = ("old", "new")) -> str:
    """One difference in words; `sides_are` names the two outputs."""
    sides = zip(sides_are, (difference.old_row, difference.new_row), strict=True)
    rows = ", ".join(f"{side} row {row:,}" for side, row in sides if row is not None)
    changes = [f"{n} {_shown(a)} to {_shown(b)}" for n, (a, b) in difference.changes.items()]
    told = f": {', '.join(changes)}" if changes else ""
    return f"{difference.kind} ({rows}){told}; {_row(difference.values)}".rstrip("; ")


def _row(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    return "NULL" if value is None else json_text(value)


def row_count(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
