"""WITH BALANCE: what is told of windows, what a plan says of it, and the promise of each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.approx.simulation import DISTRIBUTIONS
from tests.driver.scene import loop_of, memory, plan_of
from tests.operate.aggregate.mean import Mean
from tidegate.driver.report.metrics import Summary
from tidegate.operate.aggregate.balanced.answer import Balanced, balanced
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.batch import BalancedAnswer
from tidegate.operate.aggregate.functions.held_tuples import Held
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.kernels.group import Groups
from tidegate.plan.lowering.lower import lower
from tidegate.query.aggregate import AggregateCall, aggregate
from tidegate.query.clause.balance import Balance
from tidegate.query.definition import StreamDef
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Input
from tidegate.query.window import TimeWindow
from tidegate.schema import TIME

LENGTH = 3_000
MEDIANS = (
    "SELECT k, MEDIAN(v) AS m, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k "
    "WITH BALANCE ERROR 10 PERCENT CONFIDENCE 95 PERCENT TRIM ALL"
)


def run(sql: str, folder: Path, small: bool = False) -> Summary:
    """Two windows of ten seconds; half of the tuples are of one group, unless all are small."""
    chance = np.random.default_rng(7)
    keys = [f"k{i % 40}" if small or i % 2 else "large" for i in range(LENGTH)]
    values = chance.integers(50, 151, LENGTH).tolist()
    rows = [(20.0 * i / LENGTH, keys[i], values[i]) for i in range(LENGTH)]
    options = {"batch_rows": 700, "instances": 4, "buckets": 4}
    return loop_of(plan_of(sql), [memory(*rows, end=True)], folder, **options).run()


def means(summary: Summary, subquery: str = "aggregate") -> dict[str, float]:
    figures = summary.as_dict()["windows"][subquery]["figures"]
    return {name: of["mean"] for name, of in figures.items()}


def test_loads_are_told_before_and_after_trimming(tmp_path: Path) -> None:
    summary = run(MEDIANS, tmp_path)
    found = means(summary)
    window = LENGTH / 2
    assert found["groups_trimmed"] == 1
    assert found["trimmed"] == pytest.approx((window / 2 - 195) / window)
    assert found["largest_before"] - found["largest_after"] == window / 2 - 195
    assert found["imbalance_before"] == found["largest_before"] - window / 4
    assert found["imbalance_after"] == found["largest_after"] - window / 4 * (1 - found["trimmed"])
    assert found["skipped"] == 0
    assert "aggregate, 2 windows: trimmed 37%, groups trimmed 1, largest load" in summary.text()


def test_nothing_is_looked_for_where_no_group_is_large(tmp_path: Path) -> None:
    found = means(run(MEDIANS, tmp_path, small=True))
    assert found["skipped"] == 1
    assert found["trimmed"] == found["groups_trimmed"] == 0
    assert found["largest_after"] == found["largest_before"]


def test_where_keys_are_split_they_are_trimmed_when_they_are_merged(tmp_path: Path) -> None:
    found = means(run(f"{MEDIANS} WITH PARTITIONER shuffle", tmp_path), "merge")
    assert found["groups_trimmed"] == 1
    assert found["largest_before"] - found["largest_after"] == LENGTH / 4 - 195
    assert found["aggregation_cost"] > 1


def test_a_plan_says_what_is_trimmed() -> None:
    operator = plan_of(MEDIANS).subqueries[0].operator
    assert isinstance(operator, WindowAggregate)
    text = "\n".join(operator.details({}))
    assert "groups of the fullest buckets are trimmed, error 0.1 with confidence 0.95" in text
    assert "QUANTILE(`v`, 0.5): of all tuples, of a trimmed group from 195 by rank" in text
    assert "COUNT(*): exact, as tuples are folded where they come" in text


SUMS = (
    "SELECT k, SUM(v) AS s, AVG(v) AS a FROM s [RANGE 10 SECONDS] GROUP BY k "
    "WITH BALANCE ERROR 10 PERCENT"
)


def test_what_is_folded_where_it_is_read_is_exact(tmp_path: Path) -> None:
    plan = plan_of(SUMS)
    (subquery,) = plan.subqueries
    text = "\n".join(subquery.operator.details({}))
    assert "balance: trimming is pointless and not done, as the work of all aggregates is" in text
    summary = run(SUMS, tmp_path)
    assert means(summary)["trimmed"] == 0
    told = "aggregate, 2 windows: trimmed 0%, windows where trimming is pointless 100%"
    assert told in summary.text()


@pytest.mark.parametrize("partitioner", ["hash", "shuffle"])
def test_a_median_costs_what_it_does_without_balance(partitioner: str) -> None:
    """The same states go the same way; only the columns of the interval come to it."""
    exact = MEDIANS.split("WITH")[0] + f"WITH PARTITIONER {partitioner}"
    balanced = f"{exact} WITH BALANCE ERROR 10 PERCENT"
    one, other = (plan_of(sql).subqueries[0].operator for sql in (exact, balanced))
    assert isinstance(one, WindowAggregate)
    assert isinstance(other, WindowAggregate)
    assert one.spec == other.spec
    assert one.placement == other.placement


TASKS = (
    "SELECT scheduling_class, AVG(cpu) AS cpu FROM tasks [RANGE 60 MINUTES SLIDE 30 MINUTES] "
    "GROUP BY scheduling_class"
)
"""The query of section 7.5.2, on the tasks of a cluster."""


def test_the_query_of_the_dissertation_is_balanced_where_that_is_asked_for() -> None:
    """Within 10 percent at 95, T_g = 3, T = 15 percent, four workers: its imbalance is removed."""
    ways = {
        "exact": TASKS,
        "folded": f"{TASKS} WITH BALANCE ERROR 10 PERCENT",
        "trimmed": f"{TASKS} WITH BALANCE ERROR 10 PERCENT COLD 3 ROWS TRIM ALL",
    }
    rows, figures = {}, {}
    for way, sql in ways.items():
        session = tg.Session(master="none")
        tasks = session.stream("generator:tasks?rows=72000&rate=5&seed=3", name="tasks")
        sink = tg.sink.memory()
        running = session.sql(sql, tasks=tasks).start(
            sink=sink, instances=4, buckets=4, batch_rows=24_000
        )
        figures[way] = means(running.wait())
        rows[way] = sink.table().to_pylist()
    assert figures["folded"]["pointless"] == 1
    told = figures["trimmed"]
    assert told["trimmed"] > 0.8
    assert told["imbalance_before"] > 5 * told["imbalance_after"]
    assert told["largest_before"] > 5 * told["largest_after"]
    exact = [row["cpu"] for row in rows["exact"]]
    assert [row["cpu"] for row in rows["folded"]] == exact
    assert all(row["exact"] for row in rows["folded"])
    estimated = list(zip(rows["trimmed"], exact, strict=True))
    sampled = [(row, cpu) for row, cpu in estimated if not row["exact"]]
    assert len(sampled) > 20
    assert sum(abs(row["cpu"] - cpu) > 0.1 * cpu for row, cpu in sampled) <= 0.1 * len(sampled)
    assert all(row["cpu"] == cpu for row, cpu in estimated if row["exact"])


def rules_of(call: AggregateCall, error: float, confidence: float) -> Balancing:
    """Those of an aggregate of x that is trimmed."""
    schema = pa.schema([("ts", TIME), ("k", pa.string()), ("x", pa.float64())])
    node = Aggregate(
        Input(StreamDef("s", (), "ts", 0, None, schema)),
        TimeWindow(10_000_000, 10_000_000),
        (("k", column("k")),),
        (("a", call),),
        clauses=(Balance(error, confidence, trim="all"),),
    )
    operator = lower(node).subqueries[0].operator
    assert isinstance(operator, WindowAggregate)
    assert isinstance(operator.answer, BalancedAnswer)
    return operator.answer.rules


def answers(rules: Balancing, groups: list[np.ndarray]) -> Balanced:
    """The rows of groups that are all to be trimmed."""
    codes = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    seq, values = np.arange(len(codes)), pa.array(np.concatenate(groups))
    src = np.zeros(len(codes), np.int64)
    family = Held((pa.float64(),), rules.seed)
    n, trim, *lists = family.fold(
        Groups(codes, len(groups)), [values, pa.array(seq), pa.array(src), pa.array(seq)]
    )
    marked = [n, pa.array(np.ones(len(trim), np.bool_)), *lists]
    return balanced(rules, {rules.state.name: marked})


ROWS, SIZE = 200, 2000


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_promise_of_each_row_is_kept(name: str) -> None:
    """At most 1 - confidence and 1.5 points of the trimmed rows are off by more than the error."""
    chance = np.random.default_rng(201)
    groups = list(DISTRIBUTIONS[name](chance, (ROWS, SIZE)))
    truth = np.array([g.mean() for g in groups])
    for error, confidence in ((0.05, 0.9), (0.1, 0.95), (0.15, 0.99)):
        rules = rules_of(aggregate(Mean(), "x"), error, confidence)
        found = answers(rules, groups)
        value, low, high, exact = (c.to_numpy(zero_copy_only=False) for c in found.columns)
        off = np.abs(value - truth) / np.maximum(np.abs(value), np.abs(truth)) > error
        assert off.mean() <= 1 - confidence + 0.015
        by_chance = 3 * np.sqrt(confidence * (1 - confidence) / ROWS)
        missed = ~exact & ((truth < low) | (truth > high))
        assert missed.mean() <= 1 - confidence + 0.015 + by_chance
        assert (found.looked_at[exact] == SIZE).all()
        assert (found.looked_at[~exact] < SIZE).all()
    if name == "normal":
        assert exact.mean() < 0.1
        assert found.looked_at.mean() < SIZE / 4
