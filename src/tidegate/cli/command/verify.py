"""`tidegate verify`: runs a query again and compares it with what its checkpoint recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.option.asked_query import AskedQuery, asked_query, partitioner_option
from tidegate.cli.option.signed_by import SIGNED_BY, signed_by_option, signed_line
from tidegate.cli.option.value import PathText, TimeText
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.driver.report.metrics import digest_line
from tidegate.errors import OptionError, RunError, SourceError, TidegateError
from tidegate.session.verification.rerun import RecordedRun
from tidegate.session.verification.signed_chain import check_signed
from tidegate.session.verification.verify import CODE, INPUT, verified
from tidegate.sink.folder.written_rows import EventSpan
from tidegate.state.signature import PublicKey


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
@signed_by_option(
    "Check the signed chain of CHECKPOINT, and the files of the output against it, with this "
    "public key alone; the query is not run. CHECKPOINT may be a folder with a copy of its chain."
)
@click.option(
    "--out", type=PathText(), metavar="OUT", help="With --signed-by: where the output is now."
)
@answers
def verify(
    checkpoint: str,
    asked: AskedQuery,
    partitioner: str | None,
    from_: int | None,
    to: int | None,
    retained: bool,
    signed_by: str | None,
    out: str | None,
) -> CommandAnswer:
    """Run the query of CHECKPOINT again from its sources, and compare its rows and its output.

    The query is the one that the run has recorded, unless QUERY.sql is given. It runs in this
    process, into a scratch folder; checkpoint and output are only read. Exit code 0: equal; 1:
    something changed, which is named: the input, the code or the output.
    """
    if signed_by is not None:
        _refuse_beside_key(asked.is_given, partitioner, from_, to, retained)
        found = check_signed(checkpoint, PublicKey.of_file(signed_by, SIGNED_BY), out)
        code = 0 if found["equal"] else EXIT_FAILED
        return CommandAnswer(found, lambda: _signed_text(found), code=code)
    if out is not None:
        remedy = "The output of a checkpoint is where its run has put it: leave --out out."
        raise OptionError("--out", f"needs {SIGNED_BY}", out, remedy)
    record = RecordedRun(checkpoint)
    span = EventSpan(from_, to)
    facts = _verified(record, asked, partitioner, span, retained)
    if facts["changed"] == [CODE] and asked.query is not None:
        facts["changed"] += _changed_input(record, asked, span, retained)
    code = 0 if facts["equal"] else EXIT_FAILED
    return CommandAnswer(facts, lambda: _text(facts), code=code)


def _verified(
    record: RecordedRun,
    asked: AskedQuery,
    partitioner: str | None,
    span: EventSpan,
    retained: bool,
) -> dict[str, Any]:
    """What `verified` finds; a recorded source that is gone is a change, not a mistake."""
    try:
        with asked.of(record, partitioner) as (outputs, planning):
            return verified(record.store.location, outputs, span, retained, planning)
    except SourceError as error:
        if asked.is_given:
            raise
        remedy = f"The input has changed. {error.remedy or 'Put it back, or give --stream.'}"
        raise RunError(error.where, error.requirement, error.got, remedy) from error


def _changed_input(
    record: RecordedRun, asked: AskedQuery, span: EventSpan, retained: bool
) -> list[str]:
    """Beside another query: whether the recorded one also gives other rows, where it is known."""
    try:
        own = replace(asked, query=None)
        return [of for of in _verified(record, own, None, span, retained)["changed"] if of == INPUT]
    except TidegateError:
        return []


def _refuse_beside_key(*given: object) -> None:
    """With a public key no query is run, so nothing can be asked of one."""
    if any(value is not None and value is not False for value in given):
        got = "options of a query that runs again"
        remedy = "Call `verify` twice: with the key, and with these options."
        raise OptionError(SIGNED_BY, "takes --out and --json alone", got, remedy)


def _signed_text(facts: Mapping[str, Any]) -> str:
    wrong = [f"chain: {problem}" for problem in facts["chain"]]
    right = []
    for name, of in facts["outputs"].items():
        title = f"output {name}: " if name else "output: "
        wrong += [title + problem for problem in of["problems"]]
        files = of["files"]
        read = "its files cannot be read back" if files is None else f"{files:,} files as signed"
        right.append(f"{digest_line(name, of)}, {read}")
    if wrong:
        return "\n".join(["differs: not as signed", *wrong])
    return "\n".join([signed_line(facts["first"], facts["batch"], facts["link"]), *right])


def _text(facts: Mapping[str, Any]) -> str:
    rows = sum(of["rows"] for of in facts["outputs"].values())
    ran, spans = (
        facts["batches"],
        [of["compared"] for of in facts["outputs"].values() if "compared" in of],
    )
    if facts["equal"] and spans:
        return f"equal: {sum(spans):,} of the {rows:,} rows that were committed were compared"
    if facts["equal"] and (ran is None or ran["first"] == 0):
        return f"equal: the query gives the recorded rows again ({rows:,} were committed)"
    if facts["equal"] and ran["first"] > ran["last"]:
        return f"equal: the query of batch {ran['last']} was cut over, and has made no batch since"
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
