"""`tidegate state`: shows what a checkpoint contains."""

from __future__ import annotations

import click

from tidegate.cli.exit_code import EXIT_FAILED
from tidegate.cli.option.value import PathText, TimeText
from tidegate.cli.text.answer import CommandAnswer, answers
from tidegate.sink.folder.verify import found, past
from tidegate.state.inspect import facts_text, inspect, is_damaged
from tidegate.state.store import Store


@click.command()
@click.argument("directory", type=PathText(), metavar="DIR")
@click.option(
    "--verify",
    is_flag=True,
    help="Check every checksum: of the state, and of all results that were published in files. "
    "Damage, and files that are missing or were added, are exit code 1. Results in topics, "
    "databases and lakehouse tables are not looked at, which is told.",
)
@click.option(
    "--at",
    type=TimeText(),
    metavar="T",
    help="The state of an event time: after the newest batch whose watermark is at most T. A run "
    "with --keep keeps such states.",
)
@answers
def state(directory: str, verify: bool, at: int | None) -> CommandAnswer:
    """Look inside the checkpoint in DIR; changes nothing."""
    facts = inspect(Store.open(directory), verify, found, past, at)
    return CommandAnswer(facts, lambda: facts_text(facts), code=EXIT_FAILED * is_damaged(facts))
