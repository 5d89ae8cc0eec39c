"""What benchmarks compute rather than measure: paths, aggregates, and whose part an error is."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.docs.block import ROOT
from tidegate.model.cost.sample import BatchSample
from tidegate.testing import check_aggregate


@pytest.fixture(scope="module")
def path() -> ModuleType:
    return _benchmark("partition_path")


def _benchmark(name: str) -> ModuleType:
    """A file of benchmarks/, which import each other by their names alone."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def test_tables_and_figures_of_pages_are_those_of_the_results() -> None:
    """After new results: `python benchmarks/tables.py`, and what is said here, into the pages."""
    tables, figures = _benchmark("tables"), _benchmark("figures")
    old = [page for page in tables.PAGES if tables.filled(page) != tables.text_of(page)]
    assert old == []
    wrong = [f"{f.page}: {f.expected()}" for f in figures.FIGURES if not f.is_there()]
    assert wrong == []
    assert len(figures.FIGURES) >= 17


def test_a_step_takes_as_long_as_the_instance_with_most_to_do(path: ModuleType) -> None:
    whole, partly = path.Line(1.0, 0.5, 0.25), path.Line(2.0, 0.5, 0.25)
    costs = path.Costs(map_tuple_s=0.5, whole=whole, partly=partly, merge=path.Line(3.0, 0.5, 0.25))
    units, groups = np.array([4, 12, 0, 8]), np.array([4, 2, 0, 8])
    by_hash = path.Load(24, units, groups)
    assert path.critical_path(by_hash, costs) == path.Path(3.0, 1 + 6 + 0.5, 0.0)
    split = path.Load(24, units, groups, np.array([2, 2, 8, 2]), np.array([2, 2, 4, 2]))
    assert path.critical_path(split, costs) == path.Path(3.0, 2 + 6 + 0.5, 3 + 4 + 1)
    at_one = path.critical_path(path.merged_at_one(split, one_place=False), costs)
    assert at_one == path.Path(3.0, 8.5, 3 + 7 + 2.5)
    assert path.critical_path(path.merged_at_one(split, one_place=True), costs).merge_s == 0
    assert at_one.seconds == 21


@pytest.mark.parametrize(("name", "merges"), [("hash", False), ("cam", True), ("shuffle", True)])
def test_loads_are_those_of_the_tuples(path: ModuleType, name: str, merges: bool) -> None:
    streams = _benchmark("partition_streams")
    keys = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 585])
    window = streams.Window([pa.array(keys)], pa.array(np.zeros(600)))
    (tuples,) = path.loads_of_tuples(name, [window], 3)
    (partials,) = path.loads_of_partials(name, [window], 3)
    assert tuples.units.sum() == 600
    assert tuples.units.max() >= (200 if name == "shuffle" else 585)
    assert partials.units.sum() == 6 + 5  # six keys in the first batch, and one in each other
    assert (tuples.parts is not None) == merges
    if merges:
        assert tuples.parts.sum() == tuples.groups.sum()
        assert tuples.merged.sum() == 6


def test_the_costly_aggregate_is_robust_and_the_same_in_parts() -> None:
    huber = _benchmark("huber").HuberLocation(low=0.0, high=50.0, reach=4.0, candidates=16)
    check_aggregate(huber, [19.0, 20.0, None, 21.0, 1e9, -3.0, 20.5])
    values = pa.array([19.0, 20.0, 21.0] * 20 + [1e9, None])
    folded = huber.fold(huber.init(2), np.zeros(62, np.int64), values)
    found, nothing = huber.finish(folded).to_pylist()
    assert 19 < found < 21
    assert nothing is None


def test_aggregates_within_an_error_are_the_same_in_parts() -> None:
    own = _benchmark("spear_aggregates")
    values = [19.0, 20.0, 21.5, 1e3, -3.0, 20.5, 20.0, 20.25, 20.75, 18.0, 22.0]
    for made in (own.Calibrated(), own.Trimmed(), own.ScannedMedian()):
        check_aggregate(made, values)
    assert own.trimmed(np.array(values)) == pytest.approx(sum(sorted(values)[1:-1]) / 9)


@pytest.mark.parametrize("name", ["one-source", "overload-rows"])
def test_what_is_left_of_an_error_with_known_costs_is_the_machine(name: str) -> None:
    """A made-up engine that does what the model says, on a machine whose pace varies by second."""
    accuracy = _benchmark("model_accuracy")
    setup, factor = accuracy.SETUPS[name], {"one-source": 23.0, "overload-rows": 36.0}[name]
    found = accuracy.compared(setup, _made_up(setup, factor), 40.0, factor)
    before, hindsight, each_second = (
        found[kind]["latency"]["median"] for kind in ("before", "hindsight", "each_second")
    )
    assert each_second < 0.02, "the equations"
    assert 3 * each_second < hindsight < 0.15, "the machine"
    assert before < hindsight + 0.03, "costs from before are as good as those of the same batches"
    assert found["each_second"]["throughput"]["median"] < 0.02


def _made_up(setup: Any, factor: float) -> Any:
    """Batches one after the other, each with what has come; every second has a pace of its own."""
    accuracy, engine = _benchmark("model_accuracy"), _benchmark("model_run")
    rng, trace = np.random.default_rng(5), accuracy.trace_of(setup, 40.0, factor)
    r, s = trace.r.sum(axis=1), trace.s.sum(axis=1)
    window = accuracy.window_of(setup, 40.0, factor)
    kept_r, kept_s = (window.contents(of, trace.step_s) for of in (r, s))
    edges = np.arange(len(r) + 1) * trace.step_s
    tuples = np.concatenate(([0.0], np.cumsum((r + s) * trace.step_s)))
    pairs = np.concatenate(([0.0], np.cumsum((kept_s * r + kept_r * s) * trace.step_s)))
    pace = np.exp(rng.normal(0, 0.08, int(edges[-1]) + 1))
    now_s, taken, found = 0.05, 0.0, []
    while now_s < edges[-1]:
        upto = min(float(np.interp(now_s, edges, tuples)), taken + (setup.rows or np.inf))
        came = np.interp(np.linspace(taken, upto, 21), tuples, edges)
        count = upto - taken
        made = float(np.diff(np.interp(came[[0, -1]], edges, pairs))[0])
        slow = pace[int(now_s)] * np.exp(rng.normal(0, 0.1, 2))
        work_s = (0.008 + 5e-6 * count + 2.5e-9 * made) * slow[0]
        seconds = work_s + (0.017 + 1e-5 * count + 8e-10 * made) * slow[1]
        sample = BatchSample(
            seconds=seconds,
            cpu_s=work_s,
            busiest_s=work_s,
            tuples=int(count),
            comparisons=int(made),
            compared=int(made),
            outputs=int(made / 100),
        )
        now_s, taken = now_s + seconds, upto
        waited_s = count * (now_s - float(came.mean()))
        found.append(engine.Batch(now_s, waited_s, int(count), 0.0, sample))
    said = [engine.Forecasted(second + 30.0, 1.0, 1.0, 1.0, 1.0) for second in range(30)]
    return engine.Ran(found, said, {})


def test_loads_are_compared_before_and_after_trimming() -> None:
    shedpart = _benchmark("shedpart")
    told = dict.fromkeys(shedpart.FIGURES, 0.0) | {"largest_before": 900.0, "largest_after": 90.0}
    found = shedpart.windows(told | {"imbalance_before": 600.0, "imbalance_after": 0.5})
    assert (found["largest_reduced"], found["imbalance_reduced"]) == (10, 600)
    ratio = {"median": 0.5, "low": 0.4, "high": 0.6}
    costs = {"seconds_by_exact": ratio, "task_cpu_s_by_exact": ratio}
    *_, row = shedpart.table({"cluster": {"windows": found, "accuracy": {"off": 0.01}} | costs})
    assert "| cluster | 600 to 0, 600.0 times less | 900 to 90, 10.0 times less |" in row


def test_what_benchmarks_import_is_there() -> None:
    """Also inside functions, which run only when somebody measures."""
    found, missing = 0, []
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidegate"):
                module = importlib.import_module(str(node.module))
                found += len(node.names)
                missing += [
                    f"{path.name}: {node.module}.{one.name}"
                    for one in node.names
                    if not hasattr(module, one.name)
                    and importlib.util.find_spec(f"{node.module}.{one.name}") is None
                ]
    assert missing == []
    assert found > 100
