"""`tidegate explain`: what a query would do, without running it."""

from __future__ import annotations

import click

from tidegate.cli.option import query_options, read_query, refuse_later
from tidegate.plan.explain import explain as explained
from tidegate.plan.method import JoinOptions
from tidegate.runtime.launch import Place, plan_for


@click.command()
@query_options
def explain(
    query: str,
    streams: tuple[str, ...],
    times: tuple[str, ...],
    master: str,
    instances: int | None,
    method: str,
    exchange: str,
    routing: str,
    partitioner: str,
) -> None:
    """Print the plan of QUERY.sql, its subqueries and where each part runs."""
    refuse_later(partitioner=partitioner)
    node = read_query(query, streams, times)
    plan = plan_for(node, Place(master, exchange=exchange), JoinOptions(method, routing))
    click.echo(explained(node, plan))
