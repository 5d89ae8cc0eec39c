"""`tidegate report`: all plots of a run on one page."""

from __future__ import annotations

import click

from tidegate.cli.option.value import PathText
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.dashboard.report import report_of
from tidegate.errors import OptionError
from tidegate.state.inspect import size_text
from tidegate.storage.whole_file import whole_file


@click.command()
@click.argument("place", type=PathText(), metavar="CHECKPOINT|SUMMARY")
@click.option(
    "-o",
    "--out",
    "path",
    metavar="FILE",
    default="report.html",
    show_default=True,
    help="Where the page is written; a file of that name is replaced.",
)
@answers
def report(place: str, path: str) -> CommandAnswer:
    """Write one page with all pictures of a run, to keep or to attach to a ticket.

    CHECKPOINT is the folder that the run has, or had, as --checkpoint: its journal tells of the
    newest batches, whether the run goes on, has ended or was killed. SUMMARY is the file that
    `tidegate run --summary` has written; it has figures of the whole run, and no single batches.
    The page needs no server and no network. It has some of the newest rows in it.
    """
    page = report_of(place).encode()
    try:
        with whole_file(path, sync="nothing") as file:
            file.write(page)
    except OSError as error:
        raise OptionError(
            "-o", "must be a file that can be written", f"{path}, {error.strerror or error}"
        ) from error
    facts = {"file": path, "bytes": len(page)}
    return CommandAnswer(facts, lambda: f"{path}: {size_text(len(page))}")
