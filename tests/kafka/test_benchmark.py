"""benchmarks/kafka.py, small and without Spark: its rows are counted right, and its tables made."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tools.kafka import Broker

from tests.docs.block import ROOT

ROWS = 60_000


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The program, whose modules import each other by their names alone."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import kafka_cpu  # noqa: F401

        import kafka
    finally:
        sys.path.pop(0)
    return kafka


@pytest.mark.parametrize("case", ["aggregate", "copy"])
def test_a_run_writes_what_the_benchmark_counts(
    bench: ModuleType, broker: Broker, topic: str, tmp_path: Path, case: str
) -> None:
    topics = bench.Topics(broker.address)
    topics.make(topic, f"{topic}-out")
    topics.fill(topic, ROWS)
    place = bench.Place(broker.address, topic, f"{topic}-out")
    done = bench.run_tidegate(case, place, tmp_path, 10_000, "none")
    assert sum(batch["rows"] for batch in done["batches"]) == ROWS
    found = bench.check_rows(case, topics, place.out, ROWS)
    assert found == ROWS if case == "copy" else found > ROWS // 30
    with pytest.raises(SystemExit, match="rows"):
        bench.check_rows(case, topics, place.out, ROWS + 100_000)


def test_rows_that_come_live_are_timed(
    bench: ModuleType, broker: Broker, topic: str, tmp_path: Path
) -> None:
    topics = bench.Topics(broker.address)
    topics.make(topic, f"{topic}-out")
    place = bench.Place(broker.address, topic, f"{topic}-out", 100)
    command = place.command("aggregate", tmp_path, "none")
    with bench.running_beside([sys.executable, "-m", "tidegate", *command, "--follow"], tmp_path):
        found, late_ms = bench.live_ms(topics, topic, place.out, bench.Course(600, 1, 2, 100))
    assert len(found) > 600
    assert min(found) > 0
    assert late_ms


def test_cpu_of_reading_and_sending_is_counted(
    bench: ModuleType, broker: Broker, topic: str
) -> None:
    kafka_cpu = sys.modules["kafka_cpu"]
    topics = bench.Topics(broker.address)
    topics.make(topic, f"{topic}-out")
    read = kafka_cpu.reading(topics, topic, records=60, tasks=2, batches=3)
    assert list(read["cpu_ms"]) == ["gate", "hand_over", "tasks"]
    assert read["bytes"] < 60 * 200
    sent = kafka_cpu.sending(topics, f"{topic}-out", rows=3_000, rounds=2)
    assert min(sent["cpu_us_a_record"].values()) > 0
    assert len(topics.values(f"{topic}-out")) == 6_000


def test_tables_have_speeds_ratios_and_percentiles(bench: ModuleType) -> None:
    def spread(median: float) -> dict[str, float]:
        return {"median": median, "low": median - 1, "high": median + 1}

    case: dict[str, Any] = {"case": "copy", "ratio": spread(4.0)}
    case |= {n: {"tidegate": spread(8e4), "spark": spread(2e4)} for n in ("rows_per_second",)}
    case |= {"cpu_s": {"tidegate": spread(20), "spark": spread(60)}}
    *_, row = bench.table([case])
    speeds = "80,000 (79,999 to 80,001) | 20,000 (19,999 to 20,001) | 4.00 (3.00 to 5.00)"
    assert row == f"| copy | {speeds} | 20 (19 to 21) | 60 (59 to 61) |"
    percentiles = {"p50": 40.4, "p95": 60.0, "p99": 1200.0, "max": 1300.0}
    *_, row = bench.latency_table({"tidegate": {"latency_ms": percentiles}})
    assert row == "| tidegate | 40 ms | 60 ms | 1,200 ms | 1,300 ms |"
