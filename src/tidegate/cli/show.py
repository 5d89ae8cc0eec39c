"""The queries of `tidegate demo` over generated data, and how each is run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tidegate.cli import hashtags
from tidegate.cli.live.watch import run_until_signal, view_of
from tidegate.cli.option.option import read_query
from tidegate.cli.option.query_text import QueryText
from tidegate.cli.program_name import called_as, python
from tidegate.clock import Clock, SystemClock
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport, Summary
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Policy
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.session import Session
from tidegate.sink.console import ConsoleSink
from tidegate.sink.null_sink import NothingSink
from tidegate.sink.protocol import Sink

TAXI = """\
CREATE STREAM rides FROM 'generator:taxi?rows=600000&rate=100&seed=2015' TIME dropoff_time;

SELECT route, AVG(fare) AS fare, COUNT(*) AS rides
FROM rides [RANGE 15 MINUTES SLIDE 5 MINUTES]
WHERE fare > 0
GROUP BY route
ORDER BY rides DESC LIMIT 10;
"""

CALLS = """\
CREATE STREAM calls FROM 'generator:calls?rows=200000&rate=20&keys=5000&seed=2012';

CREATE STREAM callers AS
SELECT src, MAX(district) AS district,
       AVG(unix_seconds(end_time) - unix_seconds(start_time)) AS seconds
FROM calls [RANGE 1 HOUR SLIDE 5 MINUTES]
GROUP BY src;

SELECT district, COUNT(*) AS heavy_callers, MAX(seconds) AS longest_mean
FROM callers [RANGE 5 MINUTES]
WHERE seconds > 240
GROUP BY district
ORDER BY heavy_callers DESC LIMIT 10;
"""

TRADES = """\
CREATE STREAM trades FROM 'generator:trades?rows=80000&rate=1000&seed=2014' TIME ts;

CREATE STREAM hedges AS
SELECT l.symbol AS one, r.symbol AS other
FROM trades AS l [RANGE 50 MILLISECONDS] JOIN trades AS r [RANGE 50 MILLISECONDS]
ON l.symbol <> r.symbol
AND l.price <> l.average_price
AND ((r.price - r.average_price) / r.average_price)
  / ((l.price - l.average_price) / l.average_price) BETWEEN -1.05 AND -0.95;

SELECT one AS symbol, COUNT(*) AS hedges, COUNT(DISTINCT other) AS partners
FROM hedges [RANGE 20 SECONDS SLIDE 5 SECONDS]
GROUP BY one
ORDER BY hedges DESC LIMIT 10;
"""

NEXT = (
    ("The query above, as a file:", "{tidegate} demo {name} --sql > {name}.sql"),
    ("Where each part of it runs:", "{tidegate} explain {name}.sql"),
    (
        "The same from your file, as fast as it can:",
        "{tidegate} run {name}.sql --batch-rows {rows} --switch 3=4",
    ),
    (
        "With results and state in folders; stop or kill it at any time, run it again:",
        "{tidegate} run {name}.sql --batch-rows {rows} --out results --checkpoint state",
    ),
)

NEXT_PROGRAM = (
    ("The program above, as a file:", "{tidegate} demo {name} --program > {name}.py"),
    ("The same rows as fast as it can, without Spark:", "{python} {name}.py"),
    ("The same rows on Spark:", '{python} {name}.py "local[2]"'),
)

WATCHED_BATCH_S = 0.45
"""The shortest batch time when someone watches: 40 batches take 18 seconds."""


@dataclass(frozen=True)
class Show:
    """One demo query: its subject, its text, and its rows per batch; a show has 40 batches."""

    name: str
    title: str
    text: str
    batch_rows: int
    program: Callable[[Session], tuple[Output, ...]] | None = None
    """Builds the query in Python, if the text is a program."""

    @property
    def then(self) -> str:
        """What to try after it, with commands that work in the current folder."""
        known = {"tidegate": called_as(), "python": python()}
        lines = ["What to try next:"]
        for meaning, command in NEXT if self.program is None else NEXT_PROGRAM:
            written = command.format(name=self.name, rows=self.batch_rows * 3, **known)
            lines += ["", f"  {meaning}", f"    {written}"]
        return "\n".join(lines) + "\n"

    def outputs(self, place: Place, folder: str) -> tuple[Output, ...]:
        if self.program is not None:
            return self.program(Session(master=place.master))
        script = Path(folder) / f"{self.name}.sql"
        script.write_text(self.text, encoding="utf-8")
        return read_query(QueryText.of_file(str(script)), (), ())


def _hashtags(session: Session) -> tuple[Output, ...]:
    return (Output(None, hashtags.query(session).node),)


SHOWS = {
    show.name: show
    for show in (
        Show("taxi", "taxi: the ten busiest routes", TAXI, 15_000),
        Show("calls", "calls: the districts with most heavy callers", CALLS, 5_000),
        Show("trades", "trades: the symbols with most hedges", TRADES, 2_000),
        Show(
            "hashtags",
            "hashtags: where rain, wind and tide are said in this order",
            Path(hashtags.__file__).read_text(encoding="utf-8"),
            3_000,
            _hashtags,
        ),
    )
}


def run_show(
    show: Show,
    place: Place,
    console: Console | None,
    clock: Clock | None = None,
    policy: Policy | None = None,
) -> Summary:
    """Runs a query: watched and paced on a console, or without one as CSV on standard output.

    A policy that can change the instances replaces the scripted changes.
    """
    clock, policy = clock or SystemClock(), policy or Fixed()
    fixed = isinstance(policy, Fixed)
    options = RunOptions(
        instances=2 if fixed else None,
        batch_rows=show.batch_rows,
        switches={12: 4, 26: 1} if fixed else {},
        policy=policy,
    )
    with tempfile.TemporaryDirectory(prefix="tidegate-demo-") as folder:
        plan = plan_for(show.outputs(place, folder), place)
        view = view_of(console, show.title, plan, place, clock=clock)

        def watch(report: BatchReport) -> None:
            if view is not None:
                view.batch(report)
                clock.sleep(max(WATCHED_BATCH_S - report.seconds, 0.0))

        sink: Sink = NothingSink() if view else ConsoleSink()
        loop = prepare(
            plan,
            place,
            {None: sink},
            options,
            str(Path(folder) / "state"),
            clock=clock,
            on_batch=watch,
            on_rows=(lambda _, rows: view.rows(rows)) if view else None,
            observer=view.step if view else None,
        )
        return run_until_signal(loop, view)
