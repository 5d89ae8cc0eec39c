"""`tidegate verify`: runs a query again and compares it with what its checkpoint recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidegate.cli.answer import CommandAnswer, answers
from tidegate.cli.asked_query import AskedQuery, asked_query, partitioner_option
from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.value import PathText, TimeText
from tidegate.session.rerun import RecordedRun
from tidegate.session.verify import verified
from tidegate.sink.written_rows import EventSpan


@click.command()
@click.argument("checkpoint", type=PathText(), metavar="CHECKPOINT")
@asked_query
@partitioner_option
@click.option("--from", "from_", type=TimeText(), metavar="T", help="Compare rows from here on.")
@click.option("--to", type=TimeText(), metavar="T", help="Compare rows up to this time.")
@click.option(
    "--retained",
    is_flag=True,
    help="Begin with the oldest state that CHECKPOINT has, not with the sources. It is always so "
    "where rows depend on the clock or a person: IDLE, REFRESH EVERY, shares, changed queries.",
)
@answers
def verify(
    checkpoint: str,
    asked: AskedQuery,
    partitioner: str | None,
    from_: int | None,
    to: int | None,
    retained: bool,
) -> CommandAnswer:
    """Run the query of CHECKPOINT again from its sources, and compare its rows and its output.

    The query is the one that the run has recorded, unless QUERY.sql is given. It runs in this
    process, into a scratch folder; checkpoint and output are only read. Exit code 0: equal; 1:
    something changed, which is named: the input, the code or the output.
    """
    record = RecordedRun(checkpoint)
    with asked.of(record, partitioner) as (outputs, planning):
        facts = verified(record.store.location, outputs, EventSpan(from_, to), retained, planning)
    code = 0 if facts["equal"] else EXIT_FAILED
    return CommandAnswer(facts, lambda: _text(facts), code=code)


def _text(facts: Mapping[str, Any]) -> str:
    rows = sum(of["rows"] for of in facts["outputs"].values())
    ran = facts["batches"]
    if facts["equal"] and (ran is None or ran["first"] == 0):
        return f"equal: the query gives the recorded rows again ({rows:,} were committed)"
    if facts["equal"]:
        return (
            f"equal: batches {ran['first']} to {ran['last']} give their recorded rows again. The "
            f"states of earlier ones are not kept, so that those were not run."
        )
    lines = [f"differs: {', '.join(facts['changed'])} changed"]
    for name in ("fingerprint", "version"):
        was, now = facts[name]["recorded"], facts[name]["now"]
        lines += [f"{name} recorded {was}, now {now}"] if was != now else []
    for name, of in facts["outputs"].items():
        title = f"output {name}" if name else "output"
        lines += [f"{title}: {problem}" for problem in of["files"]]
        lines += row_lines(title, of["difference"])
    return "\n".join(lines)


def row_lines(title: str, difference: Mapping[str, Any] | None) -> list[str]:
    """The first differing row of an output, for people; None if it is not known."""
    if difference is None:
        return []
    if difference["row"] is None:
        return [f"{title}: digest recorded {difference['recorded']}, now {difference['now']}"]
    shown = {side: difference[side] or "no row" for side in ("recorded", "now")}
    lines = [f"{title}: first differing row {difference['row']}"]
    if "batch" in difference:
        lines[0] += f", in batch {difference['batch']}"
    return lines + [f"  {side}: {row}" for side, row in shown.items()]
