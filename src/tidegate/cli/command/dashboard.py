"""`tidegate dashboard`: the live page for queries of other processes, running or ended."""

from __future__ import annotations

import click

from tidegate import schedule
from tidegate.cli.live.page_address import tell_page
from tidegate.cli.option.value import PathText
from tidegate.cli.stop import wait_for_signal
from tidegate.dashboard.address import DashboardAddress
from tidegate.dashboard.guard import user_token
from tidegate.dashboard.query_view import CheckpointQuery
from tidegate.dashboard.server import DashboardServer


@click.command()
@click.argument("checkpoints", type=PathText(), metavar="CHECKPOINT...", nargs=-1, required=True)
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    default="0",
    help="Where the page is: a port of this host, or an address that others reach.  [default: any "
    "port that is free]",
)
def dashboard(checkpoints: tuple[str, ...], listen: str) -> None:
    """Show the queries of CHECKPOINT... in a browser, until Ctrl-C.

    They may run on this host or elsewhere, have ended, or were killed. What is shown of them comes
    from their journals and is some seconds old. Those that run here can be changed from the page.
    """
    clock = schedule.current().clock
    queries = [CheckpointQuery(location, clock) for location in checkpoints]
    server = DashboardServer(
        DashboardAddress.parse(listen, "--listen"), user_token()[0], "--listen"
    )
    for query in queries:
        server.add(query)
    tell_page(server.address.url)
    wait_for_signal()
    server.close()
