"""Write the tables of pages in docs/ that come from results, each between its two marks.

    python benchmarks/tables.py

A mark is `<!-- results: NAME -->` before a table and `<!-- end of results -->` after it, where NAME
is a table of the page here. What lies between them is replaced; one whose report is not in
benchmarks/results/ stays as it is, or says nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import autoscale
import autoscale_engine
import batch_cost
import cliffs
import cod
import controller
import controller_engine
import execution
import faults
import first_week
import latency
import many_cores
import model_accuracy
import overload
import partition_spark
import partition_tables
import peers
import promise
import resident_memory
import shedpart
import soak_samples
import spear
import spear_groups
import strategy_costs
import sustained
from determinism import page as determinism_page
from figures import significant, spread
from measure import HERE, PICTURES, RESULTS

import kafka

DOCS = HERE.parent / "docs"


@dataclass(frozen=True)
class Table:
    """The name of a report, and what makes lines of Markdown from it."""

    report: str
    lines: Callable[[Any], Iterator[str]]
    without: str | None = None
    """What stands there while nobody has measured it; what stood there, unless this says."""


def _strategies(report: Any) -> Iterator[str]:
    """Speeds beside each other, and where the time of the cores went."""
    yield f"{report['rounds']} rounds, {report['cores']} cores:"
    yield ""
    yield "| strategy | rows a second | operator-set beside it | processing | distribution | idle |"
    yield "|---|---|---|---|---|---|"
    for name, speed in report["rows_per_second"].items():
        beside = f"{report['ratio'][name]:.2f}" if name in report["ratio"] else "-"
        shares = [report["shares"][name][what]["median"] for what in strategy_costs.SHARES]
        percents = " | ".join(f"{share:.0%}" for share in shares)
        yield f"| {name} | {spread(speed)} | {beside} | {percents} |"


def _gate(report: Any) -> Iterator[str]:
    (four,) = (c for c in report["cases"] if (c["appenders"], c["readers"]) == (4, 1))
    millions = four["best"]["tuples_per_cpu_second"] / 1e6
    yield (
        f"With four sources and batches of 10,000 rows, the gate merges {millions:.0f} million "
        "tuples in a second of CPU time, once for all readers."
    )


def _scan(report: Any) -> Iterator[str]:
    runs = sorted(r["comparisons_per_second_per_core"] / 1e9 for r in report["cases"][0]["runs"])
    between = f" ({runs[0]:.2f} to {runs[-1]:.2f} in {len(runs)} rounds)" if len(runs) > 1 else ""
    yield (
        "A scan with full windows of 200,000 tuples a side, in batches of 20,000 a side, makes "
        f"{statistics.median(runs):.1f} billion comparisons a second and core end to end{between}, "
        f"on {report['cores']} cores of a machine with {report.get('machine_cores', 'as many')}."
    )


def _scan_kernel(report: Any) -> Iterator[str]:
    speed = report["cases"][0]["sparse"]["per_core"]["median"]
    yield f"The loop alone makes {speed / 1e9:.1f} billion on one core, {1e9 / speed:.2f} ns each."


def _exchange(report: Any) -> Iterator[str]:
    yield "| equality join, rows/s | shared exchange | shuffle |"
    yield "|---|---|---|"
    speed = {name: significant(of["median"]) for name, of in report["rows_per_second"].items()}
    for title, n in (("one instance", 1), ("two instances", 2)):
        yield f"| {title} | {speed[f'shared-{n}']} | {speed[f'shuffle-{n}']} |"


_PARTITIONERS, _PARTITIONERS_SPARK = "partitioners", "partitioners-spark"

PAGES: dict[str, dict[str, Table]] = {
    "performance.md": {
        "peers": Table("peers", peers.section),
        "peers_16": Table("peers-16", peers.section, without=""),
        "cliffs": Table("cliffs", lambda report: cliffs.table(report["cases"])),
        "peer_settings": Table("peers", lambda report: peers.settings_table(report["cases"])),
    },
    "gate.md": {"gate": Table("gate", _gate)},
    "measured/engine.md": {
        "strategies": Table("strategies", _strategies),
        "join_scan": Table("join_scan-sparse", _scan),
        "join_scan_kernel": Table("join_scan-kernel", _scan_kernel),
        "join_exchange": Table("join_equi-exchange", _exchange),
        "batch_cost": Table("batch_cost", lambda report: batch_cost.table(report["cases"])),
        "execution": Table("execution", lambda report: execution.table(report["cases"])),
        "latency": Table("latency", lambda report: latency.table(report["latency"])),
        "refused": Table("latency", lambda report: latency.refused_table(report["refused"])),
        "many_cores": Table("many_cores-sweep", many_cores.table),
        "sustained": Table("sustained", lambda report: sustained.table(report["runs"])),
        "first_week": Table("first_week", lambda report: first_week.table(report["cases"])),
        "kafka": Table("kafka", lambda report: kafka.table(report["cases"])),
        "kafka_latency": Table(
            "kafka", lambda report: kafka.latency_table(report["latency"]["engines"])
        ),
        "kafka_latency_16": Table(
            "kafka-16", lambda report: kafka.latency_table(report["latency"]["engines"])
        ),
        "resident_memory": Table(
            "resident_memory", lambda report: resident_memory.table(report["cases"])
        ),
        "strategy_shares": Table(
            "strategy_costs", lambda report: strategy_costs.shares_table(report["cases"])
        ),
        "strategy_costs": Table(
            "strategy_costs", lambda report: strategy_costs.costs_table(report["costs"])
        ),
        "soak": Table("soak", lambda report: soak_samples.table(report["figures"])),
    },
    "measured/approximation.md": {
        "promise": Table("promise", lambda report: promise.table(report["cells"])),
        "spear": Table("spear", lambda report: spear.table(report["cases"])),
        "spear_groups": Table("spear_groups", lambda report: spear_groups.table(report["cases"])),
        "scans": Table("spear", lambda report: spear.scan_table(report["scans"])),
    },
    "measured/shedding.md": {
        "cod_errors": Table("cod", lambda report: cod.errors_table(report["cases"])),
        "cod_costs": Table("cod", lambda report: cod.costs_table(report["cases"])),
        "overload": Table("overload", overload.table),
    },
    "measured/balance.md": {
        "shedpart": Table("shedpart", lambda report: shedpart.table(report["cases"])),
    },
    "measured/model.md": {
        "model_accuracy": Table(
            "model_accuracy", lambda report: model_accuracy.table(report["setups"])
        ),
    },
    "autoscale.md": {
        "autoscale": Table("autoscale", autoscale.table),
        "controller": Table("controller", controller.table),
        "controller_engine": Table("controller_engine", controller_engine.table),
        "autoscale_engine": Table(
            "autoscale_engine", lambda report: autoscale_engine.table(report["experiments"])
        ),
    },
    "determinism.md": {
        "answers": Table("determinism", determinism_page.answers),
        "rows": Table("determinism", determinism_page.rows),
        "guarantees": Table("determinism", determinism_page.guarantees),
        "faults": Table("faults", faults.table),
    },
    "measured/partitioning.md": {
        "sizes": Table(_PARTITIONERS, partition_tables.sizes),
        "balance": Table(_PARTITIONERS, partition_tables.balance),
        "sources": Table(_PARTITIONERS, partition_tables.sources),
        "memory": Table(_PARTITIONERS, partition_tables.memory),
        "sketch": Table(_PARTITIONERS, partition_tables.sketch),
        "speed": Table(_PARTITIONERS, partition_tables.speed),
        "costs": Table(_PARTITIONERS, partition_tables.costs),
        "path_tuples": Table(_PARTITIONERS, lambda r: partition_tables.paths(r, "tuples")),
        "path_costly": Table(_PARTITIONERS, lambda r: partition_tables.paths(r, "costly")),
        "path_partials": Table(_PARTITIONERS, lambda r: partition_tables.paths(r, "partials")),
        "claims": Table(_PARTITIONERS, partition_tables.claims),
        "replayed": Table(_PARTITIONERS_SPARK, partition_spark.table),
        "skew": Table(_PARTITIONERS_SPARK, partition_spark.skew_table),
    },
}
_MARKED = re.compile(r"<!-- results: (\w+) -->\n.*?<!-- end of results -->", re.DOTALL)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def filled(page: str) -> str:
    """The text of a page with the tables of the last reports."""
    text, of = text_of(page), PAGES[page]
    assert sorted(_MARKED.findall(text)) == sorted(of), "each table has its place"
    return _MARKED.sub(lambda found: _filled(found, of), text)


def fill(page: str) -> None:
    """Put the tables of the last reports into a page; beside them where they are not to be kept."""
    to = PICTURES / page
    to.parent.mkdir(exist_ok=True)
    to.write_text(filled(page), encoding="utf-8")


def _filled(found: re.Match[str], of: dict[str, Table]) -> str:
    """A table as its report has it."""
    name = found[1]
    file = RESULTS / f"{of[name].report}.json"
    if not file.exists():
        print(f"{name}: there is no {file.name}")
        without = of[name].without
        text = f"<!-- results: {name} -->\n{without}<!-- end of results -->"
        return found[0] if without is None else text
    lines = "\n".join(of[name].lines(json.loads(file.read_text(encoding="utf-8"))))
    return f"<!-- results: {name} -->\n\n{lines}\n\n<!-- end of results -->"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for page in PAGES:
        fill(page)


if __name__ == "__main__":
    main()
