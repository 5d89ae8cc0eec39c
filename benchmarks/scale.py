"""A simulated cluster of up to 320 instances, with costs that are measured here.

    python benchmarks/scale.py               measure (some minutes), then simulate
    python benchmarks/scale.py --measured    simulate again with the costs of the last report

Four queries run in the local runner with 1, 4 and 16 instances and batches of three sizes. What an
instance, the gate and the driver took is explained by what they had to do: tuples, comparisons,
outputs, instances. What it takes to hand a tuple to another process is measured over a socket.
With these costs a batch of a second is put together for any number of instances, and the highest
rate is found at which it takes no longer than a second.

Costs are CPU time, which other programs on the machine change little; waiting for the disk is not
in them. Results go to benchmarks/results/scale.json, a plot to docs/scale.png, and the tables of
docs/scale.md are written anew.
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from least_squares import explained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from measure import HERE, RESULTS, write_report

from tidegate.cli.main import invoke
from tidegate.driver.report.metrics import BatchReport, Summary
from tidegate.execute.task_runner import LARGE_ROWS

DOCS = HERE.parent / "docs"
RATE, DENSE, WARM, MEASURED = 2_000, 2_000, 4, 8
"""Measured with few values, so that there are pairs and outputs to take their costs from."""
DOMAIN = 100_000
"""Values of x and y in the simulated streams, all as likely."""
INSTANCES, BATCH_ROWS = (1, 4, 16), (1_000, 4_000, 16_000)
WINDOW_S, BATCH_S = 60.0, 1.0
HOST_INSTANCES, LINK_BYTES = 16, 1.25e9
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 320)
STREAMS = """
CREATE STREAM r FROM '{folder}/r.parquet' TIME ts;
CREATE STREAM s FROM '{folder}/s.parquet' TIME ts;
"""
JOIN = "SELECT r.x, s.a FROM r [RANGE 5 SECONDS] JOIN s [RANGE 5 SECONDS] ON {on};"
NEAR = 21 / DOMAIN
"""The part of values that are within 10 of one."""
Y_BAND = "r.y BETWEEN s.b - 10 AND s.b + 10"
BAND = f"r.x BETWEEN s.a - 10 AND s.a + 10 AND {Y_BAND}"
LOCAL = "local"
DRIVERS = {
    "the driver alone, by instances": LOCAL,
    "on Spark, with tasks that stay": "resident",
    "on Spark, with a job for each batch": "jobs",
}
"""Rows of a table, and the runs of `batch_cost.py` that say what Spark adds."""
COLOURS = {"scan": "#d55e00", "band": "#0072b2", "equality": "#009e73", "aggregate": "#cc79a7"}


@dataclass(frozen=True)
class Kind:
    """A query; by key each tuple is of one instance alone; `groups` close each second.

    Of all pairs of a join the part `compared` is compared, and the part `sigma` matches.
    """

    name: str
    query: str
    by_key: bool = False
    options: tuple[str, ...] = ()
    groups: float = 0.0
    compared: float = 1.0
    sigma: float = 0.0


KINDS = (
    Kind("scan", JOIN.format(on=BAND), options=("--method", "scan"), sigma=NEAR**2),
    Kind("band", JOIN.format(on=BAND), compared=NEAR, sigma=NEAR**2),
    Kind(
        "equality",
        JOIN.format(on=f"r.x = s.a AND {Y_BAND}"),
        by_key=True,
        compared=1 / DOMAIN,
        sigma=NEAR / DOMAIN,
    ),
    Kind(
        "aggregate",
        "SELECT x, COUNT(*) AS n, AVG(y) AS y FROM r [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY x;",
        by_key=True,
        groups=float(DOMAIN),
    ),
)


@dataclass(frozen=True)
class Measured:
    """Seconds, by what they are for."""

    instance_batch_s: float
    instance_tuple_s: float
    instance_pair_s: float
    instance_output_s: float
    reading_tuple_s: float
    gate_tuple_s: float
    driver_batch_s: float
    driver_instance_s: float
    driver_output_s: float


@dataclass(frozen=True)
class Exchange:
    """Handing a tuple to another process: CPU of both ends, and bytes."""

    tuple_s: float
    tuple_bytes: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measured", action="store_true", help="costs of the last report")
    if parser.parse_args().measured:
        last = json.loads((RESULTS / "scale.json").read_text())
        costs = {name: Measured(**of) for name, of in last["costs"].items()}
        exchange = Exchange(**last["exchange"])
    else:
        with tempfile.TemporaryDirectory(prefix="tidegate-scale-") as folder:
            costs = {kind.name: measured(kind, Path(folder)) for kind in KINDS}
        exchange = measured_exchange()
    cluster = {k.name: [limit(k, costs[k.name], exchange, n) for n in COUNTS] for k in KINDS}
    content = {
        "simulated": {
            "window_s": WINDOW_S,
            "batch_s": BATCH_S,
            "instances_of_a_host": HOST_INSTANCES,
            "link_bytes_per_s": LINK_BYTES,
        },
        "costs": {name: asdict(of) for name, of in costs.items()},
        "exchange": asdict(exchange),
        "cluster": cluster,
    }
    write_report("scale", content)
    draw(cluster)
    write_tables(costs, exchange, cluster)


# Measuring


def measured(kind: Kind, folder: Path) -> Measured:
    """Run a query with several numbers of instances and sizes of batches, and take it apart."""
    batches: list[Batch] = []
    for count in INSTANCES:
        for rows in BATCH_ROWS:
            batches += run(kind, folder, count, rows)
            print(f"{kind.name}: {count} instances, batches of {rows:,} rows", flush=True)
    every = [c for batch in batches for c in batch.report.instance_counts]
    # Of a join the same part of the pairs that are compared matches in all runs: what an output
    # takes is in what a pair takes.
    counted = ("taken", "outputs" if kind.groups else "compared")
    instance = explained(
        np.array([[1, *(c.get(name, 0) for name in counted)] for c in every]),
        np.array([c["cpu_us"] / 1e6 for c in every]),
    )
    reports = [batch.report for batch in batches]
    gate = explained(
        np.array([[1, r.rows_in] for r in reports]),
        np.array([r.spans_ms["gate"] / 1e3 for r in reports]),
    )
    driver = explained(
        np.array([[1, r.instances, r.rows_in, r.rows_out] for r in reports]),
        np.array([batch.driver_s for batch in batches]),
    )
    rows_in = sum(r.rows_in for r in reports)
    return Measured(
        instance_batch_s=instance[0],
        instance_tuple_s=instance[1],
        instance_pair_s=0.0 if kind.groups else instance[2],
        instance_output_s=instance[2] if kind.groups else 0.0,
        # The local runner reads files with threads of its own, whose time is not in that of tasks.
        reading_tuple_s=sum(c.get("map_cpu_us", 0) for c in every) / 1e6 / rows_in
        + max(driver[2] - gate[1], 0.0),
        gate_tuple_s=gate[1],
        driver_batch_s=driver[0],
        driver_instance_s=driver[1],
        driver_output_s=driver[3],
    )


@dataclass(frozen=True)
class Batch:
    """A batch, and the CPU time of the process in it: of its tasks and of the driver."""

    report: BatchReport
    cpu_s: float

    @property
    def driver_s(self) -> float:
        """All but what tasks used; at least a tenth of a millisecond."""
        tasks = self.report.instance_counts
        used_us = sum(c["cpu_us"] + c.get("map_cpu_us", 0) for c in tasks)
        return max(self.cpu_s - used_us / 1e6, 1e-4)


def run(kind: Kind, folder: Path, instances: int, batch_rows: int) -> list[Batch]:
    """The batches of a run after the windows have filled."""
    streams = 1 if kind.groups else 2
    rows = (WARM + MEASURED + 1) * batch_rows // streams + 5 * RATE
    for name in ("r", "s"):
        file = folder / f"{name}.parquet"
        words = [name, "--rows", rows, "--out", file, "--param", f"rate={RATE}"]
        words += ["--param", f"domain={DENSE}"]
        if invoke(["generate", *map(str, words)]):
            raise SystemExit(1)
    query = folder / "query.sql"
    query.write_text(STREAMS.format(folder=folder) + kind.query)
    batches: list[Batch] = []
    add, before_s = Summary.add, time.process_time()

    def noted(self: Summary, report: BatchReport) -> None:
        nonlocal before_s
        now_s = time.process_time()
        batches.append(Batch(report, now_s - before_s))
        add(self, report)
        before_s = time.process_time()

    Summary.add = noted  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=folder) as work:
        words = ["run", query, "--master", "none", "--instances", instances, *kind.options]
        words += ["--batch-rows", batch_rows, "--out", f"{work}/o", "--checkpoint", f"{work}/c"]
        try:
            if invoke([str(word) for word in words]):
                raise SystemExit(1)
        finally:
            Summary.add = add  # type: ignore[method-assign]
    return [batch for batch in batches if batch.report.rows_in == batch_rows][-MEASURED:]


def measured_exchange(rows: int = 100_000, rounds: int = 7) -> Exchange:
    """Write and read tuples over a local socket: CPU time of both ends together."""
    table = pa.table(
        {
            "ts": pa.array(np.arange(rows), pa.timestamp("us")),
            "x": np.arange(rows, dtype=np.int32),
            "y": np.arange(rows, dtype=np.float32),
            "z": pa.array([f"{i:012d}" for i in range(rows)]),
        }
    )
    found = []
    for _ in range(rounds):
        one, other = socket.socketpair()
        began = time.process_time()
        sender = threading.Thread(target=_send, args=(one, table))
        sender.start()
        with other, other.makefile("rb") as file, pa.ipc.open_stream(file) as reader:
            received = reader.read_all()
        sender.join()
        found.append(time.process_time() - began)
        assert received.num_rows == rows
    return Exchange(min(found) / rows, table.nbytes / rows)


def _send(to: socket.socket, table: pa.Table) -> None:
    with to, to.makefile("wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


# Simulating


def parts(
    kind: Kind, cost: Measured, exchange: Exchange, instances: int, rate: float
) -> dict[str, float]:
    """The seconds of a batch of a second, by who needs them one after the other.

    A join without an equality has its instances in a grid of about the square root each way: each
    tuple goes to all of a row or a column. By key it goes to one. Large outputs are merged and
    written by tasks.
    """
    pairs = 0.0 if kind.groups else rate**2 / 2 * WINDOW_S * BATCH_S
    outputs = min(kind.groups, rate * 5) * BATCH_S if kind.groups else pairs * kind.sigma
    tuples = rate * BATCH_S
    copies = 1.0 if kind.by_key else math.sqrt(instances)
    seen = tuples * copies / instances
    hosts = math.ceil(instances / HOST_INSTANCES)
    far = (hosts - 1) / hosts  # of what is handed on, the part for other hosts
    handed = tuples * copies
    return {
        "instances": cost.instance_batch_s
        + cost.reading_tuple_s * tuples / instances
        + cost.instance_tuple_s * seen
        + cost.instance_pair_s * pairs * kind.compared / instances
        + cost.instance_output_s * outputs / instances,
        "exchange": exchange.tuple_s * handed / instances
        + exchange.tuple_bytes * handed * far / hosts / LINK_BYTES,
        "gate": cost.gate_tuple_s * tuples,
        "driver": cost.driver_batch_s
        + cost.driver_instance_s * instances
        + cost.driver_output_s * outputs / (instances if outputs >= LARGE_ROWS else 1),
    }


def limit(kind: Kind, cost: Measured, exchange: Exchange, instances: int) -> dict[str, Any]:
    """The highest rate at which a batch takes no longer than it lasts, and who takes how much."""

    def takes(rate: float) -> dict[str, float]:
        return parts(kind, cost, exchange, instances, rate)

    low, high = 1.0, 1e10
    while high > low * 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sum(takes(middle).values()) <= BATCH_S else (low, middle)
    shares = {name: round(seconds / BATCH_S, 4) for name, seconds in takes(low).items()}
    return {
        "instances": instances,
        "tuples_per_s": round(low),
        "shares": shares,
        "most": max(shares, key=lambda name: shares[name]),
    }


# Telling


def draw(cluster: dict[str, list[dict[str, Any]]]) -> None:
    """Rates over instances, and below who takes the time of a batch with 320."""
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    rates, who = figure.subplots(2, 1, height_ratios=(3, 2))
    for name, rows in cluster.items():
        counts = [row["instances"] for row in rows]
        found = [row["tuples_per_s"] for row in rows]
        power = 1.0 if name == "aggregate" else 0.5  # the work of joins grows with the square
        style = {"color": COLOURS[name], "linewidth": 1.4}
        rates.plot(counts, found, marker="o", markersize=3, label=name, **style)
        ideal = [found[0] * (n / counts[0]) ** power for n in counts]
        rates.plot(counts, ideal, color=COLOURS[name], linewidth=0.7, linestyle=":")
    rates.set_xscale("log", base=2)
    rates.set_yscale("log")
    rates.set_xticks(COUNTS, [str(n) for n in COUNTS])
    rates.set_xlabel("instances (simulated); dotted: if all work were divided evenly")
    rates.set_ylabel("tuples/s that are kept up with")
    rates.legend(fontsize=8)
    who.set_xlim(right=1.35)
    left = np.zeros(len(cluster))
    names = list(cluster)
    shades = {"instances": "#999999", "exchange": "#56b4e9", "gate": "#e69f00", "driver": "#cc79a7"}
    for part, colour in shades.items():
        share = np.array([cluster[name][-1]["shares"][part] for name in names])
        who.barh(names, share, left=left, color=colour, label=part)
        left += share
    who.set_xlabel(f"part of a batch of a second, with {COUNTS[-1]} instances at the highest rate")
    who.legend(fontsize=8, ncols=4)
    for axes in (rates, who):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    path = DOCS / "scale.png"
    figure.savefig(path, dpi=90)
    print(f"written to {path}")


def write_tables(
    costs: dict[str, Measured], exchange: Exchange, cluster: dict[str, list[dict[str, Any]]]
) -> None:
    """Put the numbers of this run where the page has those of the last."""
    page = DOCS / "scale.md"
    text = page.read_text(encoding="utf-8")
    for name, lines in {
        "costs": _cost_table(costs, exchange),
        "rates": _rate_table(cluster),
        "walls": _wall_table(costs, exchange),
    }.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        _, after = rest.split(end)
        text = before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after
    page.write_text(text, encoding="utf-8")
    print(f"written to {page}")


def _cost_table(costs: dict[str, Measured], exchange: Exchange) -> list[str]:
    meanings = {
        "instance_batch_s": "an instance, for a batch",
        "instance_tuple_s": "an instance, for a tuple that it sees",
        "instance_pair_s": "an instance, for a pair that it compares, with its output",
        "instance_output_s": "an instance, for an output",
        "reading_tuple_s": "reading a tuple",
        "gate_tuple_s": "the gate, for a tuple",
        "driver_batch_s": "the driver, for a batch",
        "driver_instance_s": "the driver, for an instance in a batch",
        "driver_output_s": "the driver, for an output",
    }
    lines = ["| what | " + " | ".join(costs) + " |", "|---|" + "---|" * len(costs)]
    for field, meaning in meanings.items():
        cells = [_time(getattr(of, field)) for of in costs.values()]
        lines.append(f"| {meaning} | " + " | ".join(cells) + " |")
    shares = ["-" if kind.groups else f"{kind.compared:.2g}" for kind in KINDS]
    lines.append("| pairs that are compared, of all | " + " | ".join(shares) + " |")
    handed = f"{_time(exchange.tuple_s)} and {exchange.tuple_bytes:.0f} bytes"
    lines += ["", f"Handing a tuple to another process takes {handed}."]
    return lines


def _rate_table(cluster: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines = ["| instances | " + " | ".join(cluster) + " |", "|---|" + "---|" * len(cluster)]
    for place, count in enumerate(COUNTS):
        cells = []
        for rows in cluster.values():
            row, first = rows[place], rows[0]
            gain = row["tuples_per_s"] / first["tuples_per_s"]
            cells.append(f"{_count(row['tuples_per_s'])} ({gain:.1f}x, {row['most']})")
        lines.append(f"| {count} | " + " | ".join(cells) + " |")
    return lines


def _wall_table(costs: dict[str, Measured], exchange: Exchange) -> list[str]:
    lines = ["| who | " + " | ".join(costs) + " |", "|---|" + "---|" * len(costs)]
    gate = [_rate(1 / of.gate_tuple_s) if of.gate_tuple_s else "-" for of in costs.values()]
    lines.append("| the gate alone, by rate | " + " | ".join(gate) + " |")
    for title, way in DRIVERS.items():
        cells = [_driver_wall(kind, costs[kind.name], way) for kind in KINDS]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    cells = []
    for kind in KINDS:
        hosts = math.ceil(COUNTS[-1] / HOST_INSTANCES)
        copies = 1.0 if kind.by_key else math.sqrt(COUNTS[-1])
        sent = copies * (hosts - 1) / hosts / hosts * exchange.tuple_bytes
        cells.append(_rate(LINK_BYTES / sent))
    lines.append(f"| the links of hosts, {COUNTS[-1]} instances | " + " | ".join(cells) + " |")
    return lines


def _driver_wall(kind: Kind, of: Measured, way: str) -> str:
    """So many instances that the driver has work for a whole batch of a second.

    What Spark adds to a batch was measured with two instances, which does not tell what it adds for
    a batch from what it adds for each: one end of the range has all of it for each of them.
    """
    if not of.driver_instance_s:
        return "-"
    added_s, instances = spark_adds(kind, way)
    each = (BATCH_S - of.driver_batch_s) / (of.driver_instance_s + added_s / instances)
    once = (BATCH_S - of.driver_batch_s - added_s) / of.driver_instance_s
    return f"{each:,.0f} instances" if not added_s else f"{each:,.0f} to {once:,.0f}"


def spark_adds(kind: Kind, way: str) -> tuple[float, int]:
    """Seconds that a batch of 100 rows takes longer than in the local runner; by `batch_cost.py`.

    And with how many instances that was.
    """
    if way == LOCAL:
        return 0.0, 1
    report = json.loads((RESULTS / "batch_cost.json").read_text())
    took = report["cases"][f"{'aggregate' if kind.groups else 'join'}, 100 rows"]
    longer_ms = took[way]["p50"]["median"] - took[LOCAL]["p50"]["median"]
    return max(longer_ms, 0.0) / 1e3, int(report["instances"])


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "-"


def _count(value: float) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.0f}"


def _rate(value: float) -> str:
    return f"{_count(value)} tuples/s"


if __name__ == "__main__":
    main()
