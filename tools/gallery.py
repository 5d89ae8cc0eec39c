"""Runs the examples of the gallery and draws what they give: docs/gallery.md, docs/gallery/*.svg.

.venv/bin/python -m tools.gallery            # run and draw
.venv/bin/python -m tools.gallery --check    # fail where the page or a picture is not up to date
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tools.drawings import Drawing
from tools.generated import main
from tools.pictures import Points, band, bars, chart, spans

from tidegate.cli.main import invoke

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs"
HEAD = (
    "<!-- Written by tools/gallery.py from runs of the examples; `make gallery` does it again. -->"
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The rows that a run of an example gave, in order, and its summary."""

    rows: list[Row]
    summary: Row


Draw = Callable[[Outcome], Drawing]


def run(path: Path, *options: str) -> Outcome:
    """Run an example in a scratch folder; paths in it count from the root of the repository."""
    with tempfile.TemporaryDirectory() as folder, chdir(ROOT):
        out, summary = Path(folder, "out"), Path(folder, "summary.json")
        words = ["--master", "none", "--out", str(out), "--summary", str(summary), *options]
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = invoke(["run", str(path), *words])
        if code:
            raise SystemExit(f"{path.name}: must run; got exit code {code}. {said.getvalue()}")
        files = sorted(out.glob("batch=*/*.parquet"))
        rows: list[Row] = pq.read_table(files, partitioning=None).to_pylist()
        return Outcome(rows, json.loads(summary.read_text()))


# --- what is drawn of each example


def seconds(rows: Sequence[Row], column: str, time: str = "ts") -> Points:
    return [(row[time].timestamp(), float(row[column])) for row in rows]


def first_window(outcome: Outcome) -> list[Row]:
    start = outcome.rows[0]["window_start"]
    return [row for row in outcome.rows if row["window_start"] == start]


def busiest(rows: Sequence[Row], key: str, most: int) -> list[Any]:
    return [name for name, _ in Counter(row[key] for row in rows).most_common(most)]


def of_symbol(outcome: Outcome, most: int) -> tuple[str, list[Row]]:
    """The rows of the share that has most of them, the first ones."""
    (symbol,) = busiest(outcome.rows, "symbol", 1)
    return symbol, [row for row in outcome.rows if row["symbol"] == symbol][:most]


def hour(moment: datetime) -> str:
    return moment.strftime("%H:%M")


def hourly_revenue(outcome: Outcome) -> Drawing:
    values = [(f"{hour(r['window_start'])} {r['payment']}", r["earned"]) for r in outcome.rows]
    return bars("Earnings by hour and payment", "earned, by hour and payment", values)


def local_days(outcome: Outcome) -> Drawing:
    values = [
        (f"{r['window_start'] - timedelta(hours=5):%a %d %b}", r["rides"]) for r in outcome.rows
    ]
    return bars("Rides by day in New York", "rides, by day in New York", values)


def district_names(outcome: Outcome) -> Drawing:
    top = sorted(first_window(outcome), key=lambda r: (-r["calls"], r["name"]))[:8]
    return bars(
        "Calls by name of the district",
        "calls of the first quarter of an hour",
        [(row["name"], row["calls"]) for row in top],
    )


def hashtags(outcome: Outcome) -> Drawing:
    values = [(f"#{row['tag']}", row["n"]) for row in first_window(outcome)]
    return bars("The five most frequent hashtags", "uses in the first minute", values)


def top_callers(outcome: Outcome) -> Drawing:
    values = [(f"region {r['region']}: {r['src'][-4:]}", r["calls"]) for r in first_window(outcome)]
    return bars("Three callers of each region", "calls in the first half hour", values)


def percentiles(outcome: Outcome) -> Drawing:
    values = [
        (f"{row['protocol']} {name}", row[column])
        for row in first_window(outcome)
        for name, column in (("median", "half"), ("95th", "most"))
    ]
    return bars("Percentiles of the size of packets", "bytes, first five seconds", values)


def totals(outcome: Outcome) -> Drawing:
    rows = [row for row in first_window(outcome) if row["pickup_cell"] is None]
    values = [(row["payment"] or "all", row["fares"]) for row in rows]
    return bars("Fares with their total", "fares of the first hour", values)


def late_shipments(outcome: Outcome) -> Drawing:
    late = sum(row["line"] is None for row in outcome.rows)
    values = [("shipped in time", len(outcome.rows) - late), ("no shipment", late)]
    return bars("Orders with and without a shipment", "rows", values)


def not_called_back(outcome: Outcome) -> Drawing:
    asked = outcome.summary["rows_in"]
    missed = len(outcome.rows)
    return bars(
        "Calls that were not returned",
        "calls",
        [("returned", asked - missed), ("not returned", missed)],
    )


def first_calls(outcome: Outcome) -> Drawing:
    lanes = {
        f"{number_[-4:]}": [
            (row["ts"].timestamp(), row["ts"].timestamp())
            for row in outcome.rows
            if row["src"] == number_
        ]
        for number_ in busiest(outcome.rows, "src", 6)
    }
    return spans(
        "Calls that are kept", "first calls of six numbers, 20 minutes apart at least", lanes
    )


def sessions(outcome: Outcome) -> Drawing:
    lanes: dict[str, list[tuple[float, float]]] = defaultdict(list)
    chosen = busiest(outcome.rows, "src", 6)
    for row in outcome.rows:
        if row["src"] in chosen:
            end = row["window_end"] - timedelta(minutes=5)
            lanes[f"{row['src'][-4:]}"].append((row["window_start"].timestamp(), end.timestamp()))
    return spans("Sessions of six callers", "sessions of six numbers", dict(lanes))


def running_total(outcome: Outcome) -> Drawing:
    (taxi,) = busiest(outcome.rows, "medallion", 1)
    rows = [row for row in outcome.rows if row["medallion"] == taxi]
    return chart(
        "What a taxi has earned so far",
        "earned so far",
        {f"taxi {taxi[:6]}": seconds(rows, "so_far")},
        (f"taxi {taxi[:6]}",),
    )


def moving_average(outcome: Outcome) -> Drawing:
    symbol, rows = of_symbol(outcome, 80)
    series = {
        f"price of {symbol}": seconds(rows, "price"),
        "average of ten": seconds(rows, "average"),
    }
    return chart("Price and moving average", "price", series)


def last_large_trade(outcome: Outcome) -> Drawing:
    symbol, rows = of_symbol(outcome, 60)
    series = {
        f"price of {symbol}": seconds(rows, "price"),
        "last large trade": seconds(rows, "before"),
    }
    return chart("Price beside the last large trade", "price", series, ("last large trade",))


def price_changes(outcome: Outcome) -> Drawing:
    rows = outcome.rows[:200]
    lanes = {
        symbol: [(r["ts"].timestamp(),) * 2 for r in rows if r["symbol"] == symbol]
        for symbol in busiest(rows, "symbol", 6)
    }
    return spans("Jumps of prices", "the first jumps of six shares", lanes)


def late_rides(outcome: Outcome) -> Drawing:
    late, all_ = outcome.summary["rows_late"], outcome.summary["rows_in"]
    return bars(
        "Rides that count and rides that come late",
        "rides",
        [("counted", all_ - late), ("late", late)],
    )


def hedges(outcome: Outcome) -> Drawing:
    pairs = Counter(f"{row['one']} {row['other']}" for row in outcome.rows).most_common(8)
    return bars(
        "Pairs of shares that hedge each other",
        "pairs found",
        sorted(pairs, key=lambda p: (-p[1], p[0])),
    )


def early_rows(outcome: Outcome) -> Drawing:
    seen: Counter[datetime] = Counter()
    points, finals = [], []
    for row in outcome.rows:
        seen[row["window_start"]] += 1
        moment = row["window_start"].timestamp() + 600 * seen[row["window_start"]]
        moment = row["window_end"].timestamp() if row["final"] else moment
        points.append((moment, float(row["calls"])))
        if row["final"]:
            finals.append((row["window_start"].timestamp(), moment))
    return chart(
        "Counts before a window ends", "calls of the hour so far", {"so far": points}, ("so far",)
    )


def error_bound(outcome: Outcome) -> Drawing:
    exact = run(without_clause("gallery/error_bound.sql"))
    values = seconds(exact.rows, "size", "window_end")
    ends = [(float(row["size_low"]), float(row["size_high"])) for row in outcome.rows]
    return band("Intervals and exact medians", "median size in bytes", values, ends)


def without_clause(name: str) -> Path:
    """The same question without its WITH clause, as a file that is gone at the end."""
    text = re.sub(r"\nWITH .*;", ";", (EXAMPLES / name).read_text(encoding="utf-8"))
    folder = Path(SCRATCH.name)
    path = folder / Path(name).name
    path.write_text(text, encoding="utf-8")
    return path


SCRATCH = tempfile.TemporaryDirectory()


def rescale(outcome: Outcome) -> Drawing:
    epochs = [(e["batch"], e["instances"]) for e in outcome.summary["epochs"]]
    last = outcome.summary["batches"]
    drawing = Drawing(170, "Instances by batch; the rows stay the same.")
    drawing.text(16, 22, "instances, batch by batch", "small soft")
    for batch in range(last):
        instances = [n for first, n in epochs if first <= batch][-1]
        for n in range(instances):
            drawing.box(70 + 56 * batch, 114 - 24 * n, 46, 19, "a", 3)
        drawing.text(93 + 56 * batch, 152, str(batch), "mid small")
    return drawing


@dataclass(frozen=True)
class Example:
    """One idea of the gallery: its file, what it shows, and the page that says more."""

    path: str
    title: str
    idea: str
    page: str
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def link(self) -> str:
        """The page as a link, by its name."""
        name = Path(self.page.partition("#")[0]).stem
        return f"[{name}]({self.page})"


DRAW: dict[str, Draw] = {
    draw.__name__: draw
    for draw in (
        hourly_revenue,
        local_days,
        sessions,
        early_rows,
        top_callers,
        percentiles,
        totals,
        hashtags,
        running_total,
        moving_average,
        price_changes,
        first_calls,
        district_names,
        last_large_trade,
        late_shipments,
        not_called_back,
        hedges,
        late_rides,
        error_bound,
        rescale,
    )
}
"""By the name of the file of an example."""


def gallery() -> list[Example]:
    """The examples in their order, as examples/gallery/gallery.toml has them."""
    text = (EXAMPLES / "gallery" / "gallery.toml").read_text(encoding="utf-8")
    return [
        Example(e["file"], e["title"], e["idea"], e["page"], tuple(e.get("options", ())))
        for e in tomllib.loads(text)["example"]
    ]


def statement(path: Path) -> str:
    """The question and the query of an example, without how to run it."""
    text = path.read_text(encoding="utf-8")
    question = text.splitlines()[0]
    return f"{question}\n{re.sub(r'^--.*$', '', text, flags=re.MULTILINE).strip()}"


def page() -> str:
    parts = [
        HEAD,
        "# Gallery\n\nTwenty examples, each with one idea. A program runs them on generated rows "
        "and draws what they give. Run one yourself from a clone of the repository:",
        "```sh\ntidegate run examples/first_week/sessions.sql --master none\n```",
    ]
    for one in gallery():
        parts += [
            f"## {one.title}\n\n{one.idea} More: {one.link}.",
            f"![{one.title}](gallery/{one.name}.svg)",
            f"```sql\n{statement(EXAMPLES / one.path)}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def made() -> dict[Path, str]:
    """The page and the pictures, from runs of all examples."""
    found = {DOCS / "gallery.md": page()}
    for one in gallery():
        outcome = run(EXAMPLES / one.path, *one.options)
        found[DOCS / "gallery" / f"{one.name}.svg"] = DRAW[one.name](outcome).svg()
    return found


if __name__ == "__main__":
    main(made, "gallery")
