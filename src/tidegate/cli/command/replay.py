"""`tidegate replay`: runs a committed batch again, from the state before it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from tidegate.cli.command.verify import row_lines
from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.option.asked_query import AskedQuery, asked_query, partitioner_option
from tidegate.cli.option.value import PathText, Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.session.verification.replay import replayed
from tidegate.session.verification.rerun import RecordedRun


@click.command()
@click.argument("checkpoint", type=PathText(), metavar="CHECKPOINT")
@asked_query
@partitioner_option
@click.option("--batch", type=Whole(least=0), required=True, metavar="N", help="Which batch.")
@click.option(
    "--out",
    type=PathText(),
    metavar="DIR",
    help="Write the rows of the batch into this folder, which must be new or empty, as Parquet.",
)
@answers
def replay(
    checkpoint: str,
    asked: AskedQuery,
    partitioner: str | None,
    batch: int,
    out: str | None,
) -> CommandAnswer:
    """Run batch N of CHECKPOINT again, in this process, with the state of that moment.

    It begins and ends where it did, and changes neither checkpoint nor output. `tidegate run`
    with --keep keeps the states that it needs; without, the newest batch alone can run again.
    Exit code 0: the rows are those that were committed; 1: the first that differs is shown.
    """
    record = RecordedRun(checkpoint)
    record.check_repeatable(batch)
    folder = None if out is None else os.path.abspath(out)
    with asked.of(record, partitioner, batch) as (outputs, planning):
        facts = replayed(record.store.location, outputs, batch, out=folder, options=planning)
    code = 0 if facts["equal"] else EXIT_FAILED
    return CommandAnswer(facts, lambda: _text(facts), code=code)


def _text(facts: Mapping[str, Any]) -> str:
    lines = [f"batch {facts['batch']}: {facts['rows_in']:,} rows in"]
    for name, of in facts["outputs"].items():
        title = f"output {name}" if name else "output"
        if of["again"]:
            lines.append(f"{title}: the {of['rows']:,} rows that were committed")
        elif of["rows_recorded"] is None:
            lines.append(f"{title}: no digest is recorded that it could be compared with")
        else:
            was, now = of["rows_recorded"], of["rows"]
            lines.append(f"{title}: {now:,} rows, not the {was:,} that were committed")
            lines += row_lines(title, of["difference"])
    return "\n".join(lines)
