"""`tidegate why`: finds the input tuples that an output row was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from tidegate.cli.option.asked_query import AskedQuery, asked_query
from tidegate.cli.option.value import PathText, Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.errors import OptionError
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.why.answer import why_committed

_PLACES = ("file", "row", "topic", "partition", "offset", "source", "position")


@click.command()
@click.argument("checkpoint", type=PathText(), metavar="CHECKPOINT")
@asked_query
@click.option("--output", metavar="NAME", help="An output of a query that has several.")
@click.option("--row", type=Whole(least=0), metavar="N", help="The row: its number, from 0 on.")
@click.option("--where", metavar="CONDITION", help="Or the first row for which this is true.")
@answers
def why(
    checkpoint: str,
    asked: AskedQuery,
    output: str | None,
    row: int | None,
    where: str | None,
) -> CommandAnswer:
    """List the input tuples that a row was made of, where they stand, and run the query over them.

    The row is one that CHECKPOINT has committed. The query, the one that the run has recorded
    unless QUERY.sql is given, is run again from its sources up to it, and then over these tuples
    alone, which must give the same row. Checkpoint and output are only read. Exit code 0: it does;
    1: output, input or code has changed, or the tuples cannot be told.
    """
    rows = [value for value in (row, where) if value is not None]
    if len(rows) != 1:
        got = "both" if rows else "neither"
        raise OptionError("why", "takes --row or --where", got, "Write for example --row 17.")
    record = RecordedRun(checkpoint)
    with asked.of(record) as (outputs, _):
        facts = why_committed(record.store.location, outputs, output, rows[0])
    return CommandAnswer(facts, lambda: "\n".join(_lines(facts)))


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    of = f" of output {facts['output']}" if facts["output"] else ""
    tuples, again = facts["tuples"], facts["again"]
    yield f"row {facts['row']:,}{of}: {_cells(facts['values'])}"
    yield f"made of {_counted(len(tuples), 'tuple')}:"
    for each in tuples:
        place = " ".join(f"{name} {each[name]}" for name in _PLACES if name in each)
        yield f"  {each['stream']}, {place}, at {each['ts']}: {_cells(each['values'])}"
    for each in facts["table_rows"]:
        yield f"  table {each['table']}, row {each['row']}: {_cells(each['values'])}"
    over = "these tuples alone" if again["tuples"] == len(tuples) else f"{again['tuples']:,} tuples"
    others = again["rows"] - 1
    beside = f", and {_counted(others, 'other row')}" if others else ""
    yield f"run again over {over}: the same row{beside}"
    yield from (f"note: {note}" for note in facts["notes"])


def _cells(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{n} {'NULL' if v is None else v}" for n, v in values.items())


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
