"""What benchmarks compute rather than measure: paths, aggregates, and whose part an error is."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.docs.block import ROOT
from tidegate.cli.main import invoke
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
    assert len(figures.FIGURES) >= 16
    # `make papers` writes all that its programs are quoted with.
    quoted = {f.report for f in figures.FIGURES}
    assert quoted.isdisjoint(_benchmark("paper_index").measured())


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


def test_what_channels_and_tuples_cost_is_found_again() -> None:
    """Of batches that take as long as their costs say, and one in ten twice as long."""
    costs, strategies = _benchmark("strategy_costs"), _benchmark("strategies")
    made = {"alpha": 4e-5, "beta": 2e-7, "row": 3e-6, "hop": 4e-3, "batch": 0.03}
    rng, batches = np.random.default_rng(3), []
    for number, (channels, hops) in enumerate([(10, 2), (98, 2), (7, 6), (392, 2)] * 10):
        rows = int(rng.choice([5_000, 40_000]))
        tasks_ms = {"map read": 70.0, "map take": 25.0}
        batch = {"rows": rows, "taken": rows * int(rng.integers(2, 20)), "tasks_ms": tasks_ms}
        batch["seconds"] = 1.0 + (number % 10 == 0)
        of = costs.counted({"fan_out": channels, "hops": hops}, batch)
        assert of["distribution_s"] == 0.025
        for time, names in costs.COSTS.items():
            of[time] = batch["seconds"] * sum(made[name] * of[name] for name in names)
        batches.append(of)
    for time, names in costs.COSTS.items():
        found = costs.fitted(batches)[time]
        assert {name: found[name] for name in names} == pytest.approx({n: made[n] for n in names})
        assert found["error"] < 1e-9
    source = "".join(p.read_text() for p in (ROOT / "src/tidegate").rglob("*.py"))
    assert [name for name in strategies.DISTRIBUTION if f'"{name}"' not in source] == []


@pytest.mark.parametrize("name", ["one-source", "overload-rows"])
def test_what_is_left_of_an_error_with_known_costs_is_the_machine(name: str) -> None:
    """A made-up engine that does what the model says, on a machine whose pace varies by second."""
    accuracy = _benchmark("model_accuracy")
    setup, factor = accuracy.SETUPS[name], {"one-source": 23.0, "overload-rows": 36.0}[name]
    one = accuracy.compared(setup, _made_up(setup, factor), 40.0, factor)
    found = accuracy.judged(setup, [one], 40.0)
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


def test_a_sweep_sets_each_number_of_instances_beside_the_least() -> None:
    sweep = _benchmark("sweep")
    said = {"serial_time": 0.4, "serial_share": 0.1, "now": 3.1, "limit": None, "work_s": 2.0}
    runs = {
        4: [{"rate_a": 300.0, "serial": said}, {"rate_a": 320.0, "serial": said}],
        1: [{"rate_a": 100.0, "serial": said}],
    }
    one, four = sweep.points(runs, "rate_a")
    assert (one["instances"], one["speed_up"], one["efficiency"]) == (1, 1.0, 1.0)
    assert one["serial_seen"] is None
    assert (four["speed_up"], four["efficiency"]) == (pytest.approx(3.1), pytest.approx(0.775))
    # Amdahl's law with this share has the speed-up that was measured.
    seen = four["serial_seen"]
    assert 1 / (seen + (1 - seen) / 4) == pytest.approx(3.1)
    assert four["serial"]["limit"]["median"] == float("inf")
    *_, row = sweep.table("a", [one, four], "rows/s")
    assert row == "| 4 | 310 | 3.10 | 78% | 9.7% | 40% of the time, at most 3.1 of inf times |"


def test_a_sweep_is_drawn_from_its_file_without_running_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, measure = _benchmark("sweep"), _benchmark("measure")
    _benchmark("paper_index")  # else it would begin with the folder of this test, and keep it
    _benchmark("paper_value")
    for module in (sweep, measure):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    sweep.sweep_arguments(parser, [2])
    assert not sweep.is_sweep(parser.parse_args([]))
    asked = parser.parse_args(["--instances", "1,2"])
    assert sweep.is_sweep(asked)
    ran: list[tuple[int, int]] = []

    def run(instances: int, cores: int) -> dict[str, float]:
        ran.append((instances, cores))
        return {"rows_per_second": 10.0 * instances}

    sweep.swept("made", {"up": run}, asked)
    assert ran == [(1, 1), (2, 2)] * 2
    (tmp_path / "made-sweep-up.svg").unlink()
    sweep.swept("made", {"up": run}, parser.parse_args(["--draw"]))
    assert len(ran) == 4
    assert "times as fast as 1" in (tmp_path / "made-sweep-up.svg").read_text()


def test_programs_with_a_sweep_have_the_options_of_one() -> None:
    names = "join_scan join_band join_equi window_aggregate handover strategies gate".split()
    for name in [*names, "skew"]:
        text = (ROOT / f"benchmarks/{name}.py").read_text(encoding="utf-8")
        assert "sweep_arguments(parser" in text, name
        assert "CORES" in text or '"--cores"' in text, name


def test_uneven_work_is_told_beside_the_uniform_input() -> None:
    skew = _benchmark("skew")
    assert skew.busiest([2, 2, 2]) == 1.0
    assert skew.busiest([6, 0, 0]) == 3.0

    def run(ns: float, match_s: float) -> dict[str, float]:
        return {
            "busiest_compared": 1.3,
            "match_ns_per_compared": ns,
            "match_s": match_s,
            "cpu_s": 2 * match_s,
        }

    found = skew.reduced(
        {"uniform": {1: run(1.0, 1.0), 4: run(2.0, 1.2)}, "hot": {1: run(1, 2), 4: run(8, 4)}}
    )
    assert found["hot"]["speed_of_uniform"] == 0.25
    assert found["hot"]["match_cpu"] == found["hot"]["cpu"] == 2.0
    kept = {"busiest": False, "speed_of_uniform": True, "match_cpu": True}
    assert found["uniform"]["kept"] == kept


@pytest.mark.parametrize("name", ["uniform", "zipf", "hot", "equal", "drift"])
def test_pairs_of_uneven_inputs_are_counted_as_they_are(name: str, tmp_path: Path) -> None:
    skew, count = _benchmark("skew"), _benchmark("count")
    skew.write_input(tmp_path, name, 3_000)
    (r_ts, x, y), (s_ts, a, b) = (
        count.columns(tmp_path / f"{side}.parquet", *names)
        for side, names in (("r", ("x", "y")), ("s", ("a", "b")))
    )
    near = np.abs(r_ts[:, None] - s_ts) <= 1_000_000
    near &= np.abs(x[:, None] - a) <= 5_000
    wanted = int((near & (y[:, None] <= b)).sum())
    assert count.bounded_pairs(tmp_path, 1_000_000, 5_000) == wanted
    share = np.unique(x, return_counts=True)[1].max() / 3_000
    low, high = {"zipf": (0.1, 0.2), "hot": (0.08, 0.12), "equal": (1, 1)}.get(name, (0, 0.01))
    assert low <= share <= high


@pytest.mark.parametrize("limit", [700.0, 1_000.0, 9_000.0])
def test_the_highest_rate_that_is_sustained_is_found(limit: float) -> None:
    sustained = _benchmark("sustained")

    def attempt(rate: float) -> dict[str, Any]:
        return {"rate": rate, "sustained": rate <= limit}

    found = sustained.highest(attempt, 1_000.0, tries=12)
    assert limit / sustained.CLOSE < found["best"]["rate"] <= limit
    assert len(found["tries"]) <= 8
    assert sustained.highest(attempt, 1e9, tries=2)["best"] is None


def test_latency_counts_a_batch_with_its_tuples() -> None:
    sustained = _benchmark("sustained")
    small = {"p50": 100.0, "p99": 500.0, "max": 900.0, "tuples": 10}
    large = {"p50": 20.0, "p99": 40.0, "max": 60.0, "tuples": 10_000}
    found = sustained.latency([{"latency_ms": small}, {"latency_ms": large}])
    assert found == {"p50": 20.0, "p99": 40.0, "max": 900.0}
    assert sustained.latency([])["p99"] == float("inf")


@pytest.mark.parametrize("nodes", [1, 2, 5, 16])
def test_a_handshake_join_compares_every_pair_of_a_window_once(nodes: int, tmp_path: Path) -> None:
    handshake, count, data = (_benchmark(name) for name in ("handshake", "count", "data"))
    case = handshake.Case(domain=100, window_rows=900, batch_rows=300, per_second=1_000)
    data.write_band(tmp_path, case.rows, case.per_second, case.domain)
    sides = [handshake.block_of(tmp_path, side) for side in "rs"]
    did = handshake.joined(case, *sides, nodes=nodes)
    pairs = count.band_pairs(tmp_path, case.window_us, handshake.BAND, handshake.BAND)
    assert did["rows_out"] == pairs > 10_000
    assert did["comparisons"] == count.near_pairs(tmp_path, case.window_us)


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


@pytest.mark.parametrize(
    ("rise", "unit", "flat"),
    [(0.0, "mib", True), (15.0, "mib", True), (40.0, "mib", False), (5.0, "threads", False)],
)
def test_a_soak_is_flat_if_its_last_quarter_is_as_its_second(
    rise: float, unit: str, flat: bool
) -> None:
    samples = _benchmark("soak_samples")
    filling = np.concatenate([np.linspace(0, 30, 10), np.full(20, 30.0), np.full(10, 30.0 + rise)])
    assert samples.flat(filling.tolist(), unit)["flat"] is flat
    large = (filling * 100).tolist()
    assert samples.flat(large, unit)["flat"] is (rise * 100 <= 300)


def test_a_soak_counts_its_windows_as_the_query_gives_them(tmp_path: Path) -> None:
    soak = _benchmark("soak")
    rate, records = 10, 700
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "in.json").write_bytes(b"\n".join(soak.bodies(0, records, rate)))
    (stream, select) = soak.QUERY.split(";")[:2]
    spans = {"range_s": soak.PANE_S * soak.PANES, "slide_s": soak.PANE_S}
    script = f"{stream.replace('kafka://{address}/{topic}', str(folder))};{select};"
    (tmp_path / "query.sql").write_text(script.format(**spans))
    words = ["run", str(tmp_path / "query.sql"), "--master", "none", "--batch-rows", "200"]
    words += ["--checkpoint", str(tmp_path / "state"), "--out", f"delta:{tmp_path / 'table'}"]
    assert invoke(words) == 0
    found = soak.rows_in(tmp_path / "table")
    assert found == soak.counted(records, rate)
    assert len(found) > 500


def test_a_soak_switches_as_often_in_each_quarter_after_its_kill() -> None:
    soak = _benchmark("soak")
    done = soak.events(3_600.0, 16)
    assert [at for at, *_ in done] == sorted(at for at, *_ in done)
    (killed_s,) = (at for at, what, _ in done if what == "kill")
    quarter_s = (3_600 - killed_s) / 4
    after = [(at, n) for at, what, n in done if what == "scale" and at > killed_s]
    quarters = [[n for at, n in after if int((at - killed_s) / quarter_s) == q] for q in range(4)]
    assert quarters == [[2, 3, 2, 3]] * 4


def test_answers_are_judged_by_their_rows_and_then_by_their_order() -> None:
    judge = _benchmark("determinism.judge")
    assert judge.said(judge.compare(["a", "b", "b"], ["a", "b", "b"])) == "same"
    assert judge.said(judge.compare(["a", "b", "b"], ["b", "a", "b"])) == "other order"
    found = judge.compare(["a", "b", "b", "c"], ["c", "b", "a", "d", "d"])
    assert (found["lost"], found["gained"], judge.said(found)) == (1, 2, "**2 rows**")
    assert (found["first_lost"], found["first_gained"]) == (["b", "b"], ["d", "d"])


def test_every_arrival_has_the_rows_of_each_source_in_their_order() -> None:
    streams = _benchmark("determinism.streams")
    for stream in streams.STREAMS:
        for arrival in streams.ARRIVALS:
            came = list(streams.chunks(stream, arrival))
            for name in streams.SOURCES:
                of = pa.concat_tables([rows for chunk, rows in came if chunk[0] == name])
                assert of.equals(streams.source(stream, name).combine_chunks())
    assert len(streams.ARRIVALS) * len(streams.STREAMS) == 9
