"""`tidegate state`: what a checkpoint holds."""

from __future__ import annotations

import click

from tidegate.json_text import json_text
from tidegate.sink.verify import found, past
from tidegate.state.inspect import facts_text, inspect, is_damaged
from tidegate.state.store import Store


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--verify",
    is_flag=True,
    help="Check every checksum: of the state, and of all results that were published in files. "
    "Damage is exit code 1; folders that were archived or deleted are a warning. Results in "
    "topics, databases and lakehouse tables are not looked at, which is told.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def state(directory: str, verify: bool, as_json: bool) -> None:
    """Look inside the checkpoint in DIR; changes nothing."""
    facts = inspect(Store.open(directory), verify, found, past)
    click.echo(json_text(facts, indent=2) if as_json else facts_text(facts))
    if is_damaged(facts):
        click.get_current_context().exit(1)
