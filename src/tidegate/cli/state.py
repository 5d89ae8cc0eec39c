"""`tidegate state`: what a checkpoint holds."""

from __future__ import annotations

import click

from tidegate.json_text import json_text
from tidegate.sink.verify import found
from tidegate.state.inspect import describe, inspect
from tidegate.state.store import Store


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--verify",
    is_flag=True,
    help="Check every checksum: of the state, and of the results of the newest batch.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def state(directory: str, verify: bool, as_json: bool) -> None:
    """Look inside the checkpoint in DIR; changes nothing."""
    store = Store.open(directory)
    if as_json:
        click.echo(json_text(inspect(store, verify, found), indent=2))
    else:
        click.echo(describe(store, verify, found))
