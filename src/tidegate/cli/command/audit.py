"""`tidegate audit`: runs a Structured Streaming query under several cuts and compares rows."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tidegate.cli.command.compare import difference_line, row_count
from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.option.option import options, settings
from tidegate.cli.option.value import PathText, Whole
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.session.place import Place
from tidegate.session.verification.audit import (
    OUTPUT_MODES,
    Audit,
    AuditedRun,
    AuditOptions,
    audit_job,
)


@click.command()
@click.argument("job", type=PathText(), metavar="JOB.py")
@click.option(
    "--output-mode",
    "mode",
    type=click.Choice(OUTPUT_MODES),
    default="append",
    show_default=True,
    help="Spark's output mode. Of complete, the last result is compared.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="A column that tells rows apart; repeat for several. Rows of a key are then compared by "
    "column, and of --output-mode update the newest of each key.",
)
@click.option(
    "--files",
    "cuts",
    type=Whole(),
    multiple=True,
    default=(1, 3),
    show_default=True,
    metavar="N",
    help="So many files in a micro-batch; repeat for several cuts.",
)
@click.option("--order", is_flag=True, help="Rows in another order are a difference too.")
@click.option(
    "--most",
    type=Whole(least=0),
    default=5,
    show_default=True,
    metavar="N",
    help="How many differing rows of each run are listed; all are counted.",
)
@options("--master", "--conf")
@answers
def audit(
    job: str,
    mode: str,
    keys: tuple[str, ...],
    cuts: tuple[int, ...],
    order: bool,
    most: int,
    master: str | None,
    conf: tuple[str, ...],
) -> CommandAnswer:
    """Run a query of Spark Structured Streaming under several cuts, and list the rows that move.

    JOB.py defines query(spark), which reads files with spark.readStream and returns the streaming
    DataFrame that you would write. It runs with other numbers of files in a micro-batch, other
    shuffle partitions and a restart in the middle. Exit code 0: no run has other rows; 1: one has.
    Nothing but a temporary folder is written.
    """
    asked = AuditOptions(mode=mode, cuts=cuts, keys=keys, order=order, most=most)
    found = audit_job(job, Place.at(master, conf=settings(conf)), asked)
    code = 0 if found.stable else EXIT_FAILED
    return CommandAnswer(found.as_dict(), lambda: "\n".join(_lines(found)), code=code)


def _lines(found: Audit) -> Iterator[str]:
    verdict = "no rows move" if found.stable else "rows move"
    yield f"{verdict}: {row_count(found.rows)} with all files at once, {len(found.runs)} other runs"
    for run in found.runs:
        yield f"{run.title}: {_outcome(run)}, beside {run.beside}"
        for difference in run.log.listed:
            yield f"  {difference_line(difference, ('beside', 'here'))}"


def _outcome(run: AuditedRun) -> str:
    counts = [f"{count:,} {_WORDS[kind]}" for kind, count in run.log.counts.items() if count]
    return ", ".join(counts) or "the same rows in the same order"


_WORDS = {
    "changed": "changed",
    "moved": "at another place",
    "only in old": "missing",
    "only in new": "more",
}
