"""`tidegate demo`: a real query over embedded data, with a live view, that ends by itself."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from tidegate.cli.option import read_query
from tidegate.cli.run import report
from tidegate.cli.value import OneOf
from tidegate.cli.watch import run_until_signal, view_of
from tidegate.clock import Clock, SystemClock
from tidegate.errors import UnavailableError
from tidegate.runtime.launch import DEFAULT_MASTER, Place, plan_for, prepare
from tidegate.runtime.metrics import BatchReport, Summary
from tidegate.runtime.options import RunOptions
from tidegate.sink.console import ConsoleSink
from tidegate.sink.terminal import drawable

TAXI = """\
CREATE STREAM rides FROM 'generator:taxi?rows=600000&rate=100&seed=2015' TIME dropoff_time;

SELECT route, AVG(fare) AS fare, COUNT(*) AS rides
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
WHERE fare > 0
GROUP BY route
ORDER BY rides DESC LIMIT 10;
"""

TITLE = "taxi: the ten busiest routes"
OPTIONS = RunOptions(instances=2, batch_rows=15_000, switches={12: 4, 26: 1})
WATCHED_BATCH_S = 0.45
"""How long a batch takes at least when someone watches: 40 batches, so 18 seconds."""

SEEN = """\
The instances changed from 2 to 4 and to 1 on the way; without that the rows would be the same.
"""

NEXT = """\
What to try next:

  tidegate demo taxi --sql > taxi.sql                       the query above, as a file
  tidegate explain taxi.sql                                 where each part of it runs
  tidegate run taxi.sql --batch-rows 50000 --switch 3=4     the same, from your file, unpaced
  tidegate run taxi.sql --batch-rows 50000 --out results --checkpoint state
                                                            kill it at any time, run it again
"""


@dataclass(frozen=True)
class Pace:
    """Waits after batches that were too fast for a person to follow."""

    clock: Clock
    batch_s: float

    def wait(self, report: BatchReport) -> None:
        self.clock.sleep(max(self.batch_s - report.seconds, 0.0))


@click.command()
@click.argument("name", type=OneOf(["taxi", "calls", "trades", "hashtags"]), default="taxi")
@click.option(
    "--master",
    default=DEFAULT_MASTER,
    show_default=True,
    metavar="M",
    help="A Spark master URL, or none.",
)
@click.option("--sql", is_flag=True, help="Only print the query.")
def demo(name: str, master: str, sql: bool) -> None:
    """Show a query at work: the ten busiest taxi routes of the last 15 minutes, every 5 minutes.

    100 minutes of generated rides in a live view, with two changes of instances on the way. In a
    terminal it takes its time, about 20 seconds, else it prints all rows as fast as it can.
    """
    if name != "taxi":
        raise UnavailableError(
            f"demo {name}", "only taxi can be shown", name, "The others are not available yet."
        )
    click.echo(TAXI, nl=not sql)
    if not sql:
        summary = show_taxi(Place(master), drawable(sys.stdout))
        report(summary, None)
        click.echo("\n" + (SEEN if summary.finished else "") + NEXT, nl=False)


def show_taxi(place: Place, console: Console | None, clock: Clock | None = None) -> Summary:
    """Run the query, watched and paced on a console, without one as CSV on standard output."""
    clock = clock or SystemClock()
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as folder:
        script = Path(folder) / "taxi.sql"
        script.write_text(TAXI, encoding="utf-8")
        plan = plan_for(read_query(str(script), (), ()), place)
        view = view_of(console, TITLE, plan, place, clock=clock)
        pace = Pace(clock, WATCHED_BATCH_S)

        def watch(report: BatchReport) -> None:
            if view is not None:
                view.batch(report)
                pace.wait(report)

        sink = view or ConsoleSink()
        checkpoint = str(Path(folder) / "state")
        loop = prepare(plan, place, sink, OPTIONS, checkpoint, clock=clock, on_batch=watch)
        return run_until_signal(loop, view)
