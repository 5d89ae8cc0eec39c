"""`tidegate demo`: runs a real query over embedded data with a live view, and ends by itself."""

from __future__ import annotations

import sys

import click

from tidegate.cli.command.run import report
from tidegate.cli.option.option import policy_option
from tidegate.cli.option.value import OneOf
from tidegate.cli.show import SHOWS, run_show
from tidegate.elastic import registry as policies
from tidegate.elastic.fixed import Fixed
from tidegate.session.place import DEFAULT_MASTER, Place
from tidegate.sink.terminal import drawable

SEEN = """\
The instances changed from 2 to 4 and to 1 on the way; without that the rows would be the same.
"""

DECIDED = """\
A policy decided how many instances there were; with any other the rows would be the same.
"""


@click.command()
@click.argument("name", type=OneOf(list(SHOWS)), default="taxi")
@click.option(
    "--master",
    metavar="M",
    help=f"A Spark master URL, or none.  [default: that of spark-submit, else {DEFAULT_MASTER}]",
)
@policy_option
@click.option("--sql", "--program", "text", is_flag=True, help="Only print the query.")
def demo(name: str, master: str | None, policy: str, text: bool) -> None:
    """Show a query at work, with two changes of instances on the way, or those of a --policy.

    taxi: the ten busiest routes of the last 15 minutes, every 5 minutes. calls: districts by how
    many of their callers talk long, a window over a window. trades: hedges, a join on a predicate
    without equality, counted by symbol. hashtags: an operator of one's own that follows a sequence
    of words in the tweets of each hashtag. In a terminal they take their time, about 20 seconds,
    else they print all rows as fast as they can.
    """
    show, chosen = SHOWS[name], policies.of(policy, "--policy")
    click.echo(show.text, nl=not text)
    if not text:
        summary = run_show(show, Place.at(master), drawable(sys.stdout), policy=chosen)
        report(summary, None)
        seen = SEEN if isinstance(chosen, Fixed) else DECIDED
        click.echo("\n" + (seen if summary.finished else "") + show.then, nl=False)
