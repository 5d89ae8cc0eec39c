"""`tidegate demo`: a real query over embedded data, with a live view, that ends by itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from tidegate.cli.option import read_query
from tidegate.cli.run import report, run_until_signal
from tidegate.errors import UnavailableError
from tidegate.runtime.launch import DEFAULT_MASTER, Place, plan_for, prepare
from tidegate.runtime.options import RunOptions
from tidegate.sink.console import ConsoleSink

TAXI = """\
CREATE STREAM rides FROM 'generator:taxi?rows=600000&rate=100&seed=2015' TIME dropoff_time;

SELECT route, AVG(fare) AS fare, COUNT(*) AS rides
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
WHERE fare > 0
GROUP BY route
ORDER BY rides DESC LIMIT 10;
"""

NEXT = """\
What to try next:
  put the query above into taxi.sql, then
  tidegate explain taxi.sql                                where each part of it runs
  tidegate run taxi.sql --instances 1 --switch 3=4         more instances from batch 3 on, same rows
  tidegate run taxi.sql --out results --checkpoint state   kill it at any time, run it again
"""


@click.command()
@click.argument("name", type=click.Choice(["taxi", "calls", "trades", "hashtags"]), default="taxi")
@click.option(
    "--master",
    default=DEFAULT_MASTER,
    show_default=True,
    metavar="M",
    help="A Spark master URL, or none.",
)
def demo(name: str, master: str) -> None:
    """Show a query at work: the ten busiest taxi routes of the last 15 minutes, every 5 minutes."""
    if name != "taxi":
        raise UnavailableError(
            f"demo {name}", "only taxi can be shown", name, "The others are not available yet."
        )
    click.echo(TAXI)
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as folder:
        script = Path(folder) / "taxi.sql"
        script.write_text(TAXI, encoding="utf-8")
        place = Place(master)
        plan = plan_for(read_query(str(script), (), ()), place)
        click.echo(
            "starting "
            + ("in this process" if not place.on_spark else f"Spark on {master}")
            + " ..."
        )
        options = RunOptions(batch_rows=30_000, switches={6: 1, 12: 2})
        loop = prepare(
            plan, place, ConsoleSink(title="busiest routes,"), options, str(Path(folder) / "state")
        )
        report(run_until_signal(loop), None)
    click.echo("\n" + NEXT)
