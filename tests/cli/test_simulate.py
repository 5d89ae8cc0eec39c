"""`tidegate simulate` as a user meets it: the table, the records, the picture."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli.main import invoke
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.sample import BatchSample
from tidegate.model.sizing.calibration_file import MeasuredSubquery, QueryCalibration

KEYS = (
    "t window_r window_s comparisons throughput latency_in latency_join latency_out latency_batch "
    "latency instances"
).split()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trace(*phases: tuple[int, float, float]) -> str:
    """A trace of phases: seconds, and the rates of R and S."""
    rates = [(r, s) for seconds, r, s in phases for _ in range(seconds)]
    lines = [f"{t},{r},{s}" for t, (r, s) in enumerate(rates)]
    Path("t.csv").write_text("\n".join(["t,r,s", *lines]))
    return "t.csv"


def records(*options: str) -> list[dict[str, Any]]:
    assert invoke(["simulate", *options, "--json", "out.json"]) == 0
    found: list[dict[str, Any]] = json.loads(Path("out.json").read_text())
    return found


def test_a_record_for_each_of_1500_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    found = records("--experiment", "section7", "--window", "60 seconds", "--instances", "3")
    assert capsys.readouterr().err == "1,500 records in out.json\n"
    assert [one["t"] for one in found] == list(range(1_500))
    assert all(list(one) == KEYS for one in found)
    assert {one["instances"] for one in found} == {3}
    last_of_a = found[299]
    assert (last_of_a["window_r"], last_of_a["window_s"]) == (8_400, 8_400)
    assert last_of_a["comparisons"] == last_of_a["throughput"] == 2 * 140 * 8_400
    terms = ("latency_in", "latency_join", "latency_out", "latency_batch")
    assert last_of_a["latency"] == pytest.approx(sum(last_of_a[term] for term in terms))


def test_windows_of_rows_hold_as_much_from_part_a_on() -> None:
    found = records("--experiment", "section7", "--window", "8,400 rows", "--no-deterministic")
    assert {one["window_r"] for one in found[60:]} == {8_400}
    assert {one["latency_in"] for one in found} == {0}


def test_what_is_not_defined_is_null() -> None:
    found = records("--trace", trace((3, 0, 0), (3, 10, 10)))
    assert found[0]["latency"] is None
    assert found[0]["throughput"] == 0
    assert found[4]["latency"] > 0


def test_overload_shows_in_throughput_and_latency() -> None:
    options = ("--alpha", "1e-4", "--beta", "0", "--sigma", "1", "--no-deterministic")
    found = records("--trace", trace((20, 30, 30)), "--window", "10 s", "--quota", "0.5", *options)
    assert found[-1]["comparisons"] == 2 * 30 * 300
    assert found[-1]["throughput"] == pytest.approx(0.5 / 1e-4)
    assert found[-1]["latency"] > 5
    assert found[1]["latency"] < 0.1


def test_a_batch_adds_its_wait(capsys: pytest.CaptureFixture[str]) -> None:
    rates = trace((30, 100, 100))
    plain = records("--trace", rates, "--window", "10 s")[-1]
    batched = records("--trace", rates, "--window", "10 s", "--batch", "500 ms")[-1]
    assert plain["latency_batch"] == 0
    batches = ("--window", "10 s", "--batch", "500 ms")
    assert invoke(["simulate", "--trace", rates, *batches]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("latency is from the arrival of ")
    assert invoke(["simulate", "--trace", rates, *batches, "--alpha", "2e-5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("overload: work was left over in ")
    assert batched["latency_batch"] == pytest.approx(0.25, rel=0.1)


def test_the_policy_follows_the_load() -> None:
    rates = trace((100, 50, 50), (100, 150, 150), (100, 50, 50))
    # 50 and 50 with 10 s: 50,000 comparisons a second, of which an instance can make 100,000.
    options = ("--window", "10 s", "--alpha", "1e-5", "--beta", "0", "--policy", "model")
    found = records("--trace", rates, *options)
    counts = [one["instances"] for one in found]
    assert counts[99] == 1
    assert counts[199] == 6  # 450,000 of 0.8 * 600,000
    assert counts[299] == 1
    assert len(set(counts[115:200])) == 1, "settled after a window"
    assert max(records("--trace", rates, *options, "--maximum", "3"), key=_count)["instances"] == 3
    ahead = [one["instances"] for one in records("--trace", rates, *options, "--ahead", "10 s")]
    assert switches(ahead) < switches(counts)
    assert (ahead[99], ahead[199], ahead[299]) == (1, 6, 1)


def test_the_policy_with_a_latency_target_has_what_the_rates_need(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rates = trace((40, 50, 50), (60, 150, 150), (60, 50, 50))
    options = ("--trace", rates, "--window", "10 s", "--alpha", "1e-5", "--beta", "0")
    counts = [one["instances"] for one in records(*options, "--policy", "auto?latency=2")]
    # Work for 0.5 instances, for 4.5, and for 0.5 again.
    assert (counts[39], counts[90], counts[159]) == (1, 5, 1)
    limited = records(*options, "--policy", "auto", "--maximum", "3")
    assert max(one["instances"] for one in limited) == 3
    cheaper = records(*options, "--policy", "auto?cost=2", "--maximum", "30")
    assert max(one["instances"] for one in cheaper) == 2, "the smaller of two limits"
    capsys.readouterr()


def test_the_threshold_policy_sees_how_busy_instances_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rates = trace((100, 50, 50), (100, 150, 150), (100, 50, 50))
    options = ("--trace", rates, "--window", "10 s", "--alpha", "1e-5", "--beta", "0")
    found = records(*options, "--policy", "threshold")
    counts = [one["instances"] for one in found]
    # Work for 0.5 instances, for 4.5, and for 0.5 again, to be busy for 0.45 to 0.9 of the time.
    assert (counts[99], counts[299]) == (1, 1)
    assert 5 <= counts[199] <= 10
    assert counts[100:103] == [1, 1, 1], "it has to see it first"
    assert max(one["latency"] for one in found[100:110]) > 0.5, "meanwhile work waits"
    half = records(*options, "--quota", "0.5", "--policy", "threshold?upper=0.6&target=0.5")
    assert 9 / 0.6 <= half[199]["instances"] <= 9 / 0.45, "busy for 0.45 to 0.6 of half of the time"
    for limited in (("threshold", "--maximum", "3"), ("threshold?maximum=3", "--maximum", "30")):
        assert max(records(*options, "--policy", *limited), key=_count)["instances"] == 3
    capsys.readouterr()
    assert invoke(["simulate", *options, "--policy", "threshold"]) == 0
    table = capsys.readouterr().out
    assert "quota 1; policy threshold\n" in table
    assert "stability: " in table
    assert "accuracy: enough instances in " in table


def _count(record: dict[str, Any]) -> int:
    return int(record["instances"])


def switches(counts: list[int]) -> int:
    return sum(a != b for a, b in itertools.pairwise(counts))


def test_the_table_of_an_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["simulate", "--experiment", "section7", "--policy", "model"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    lines = shown.out.splitlines()
    assert lines[0] == (
        "section7: 1,500 seconds, windows of 1 minute, deterministic; alpha 2e-08, beta 1e-06, "
        "sigma 0.01, quota 1; policy model"
    )
    names = "part R/s S/s comparisons/s done/s latency in join instances switches"
    assert lines[2].split() == names.split()
    assert [line.split()[0] for line in lines[3:8]] == list("ABCDE")
    assert lines[3].split()[1:3] == ["140", "140"]
    assert lines[9] == "the instances kept up: all work was done in the second in which it came"
    assert [line.split(":")[0] for line in lines[10:]] == [
        "stability",
        "accuracy",
        "settling time",
        "overshoot",
    ]


def test_the_table_of_a_trace_has_its_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["simulate", "--trace", trace((150, 1000, 1000)), "--alpha", "1e-7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["from", "0", "60", "120"]
    assert lines[-1].startswith("overload: work was left over in ")


def test_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--trace", trace((40, 10, 20), (40, 40, 20)), "--policy", "model")
    assert invoke(["simulate", *options, "--plot", "join.png"]) == 0
    assert capsys.readouterr().err == "drawn in join.png\n"
    drawn = Path("join.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 10_000


def test_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert invoke(["simulate", "--experiment", "section7", "--plot", "join.png"]) == 2
    assert capsys.readouterr().err == (
        "tidegate: --plot: matplotlib must be installed; got no such module. Run `pip install "
        "matplotlib`; it comes with the extra tidegate[plot].\n"
    )


def test_records_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["simulate", "--trace", trace((2, 10, 10)), "--json", "-"]) == 0
    assert [one["t"] for one in json.loads(capsys.readouterr().out)] == [0, 1]


def test_it_starts_without_the_engine() -> None:
    """So that it is quick: what runs queries, and what they are written with, stays away."""
    program = (
        "import sys; from tidegate.cli.main import invoke; "
        "assert invoke(['simulate', '--experiment', 'section7', '--policy', 'model']) == 0; "
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr); "
        "print('tidegate.driver.loop' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    modules, loop = done.stderr.splitlines()
    assert "numpy" in modules
    assert not [m for m in ("sqlglot", "pandas", "numba", "pyspark", "matplotlib") if m in modules]
    assert loop == "False"


def test_costs_that_were_measured(capsys: pytest.CaptureFixture[str]) -> None:
    estimator = Estimator(everywhere=True)
    for tuples, pairs in [(100, 9_000), (400, 80_000), (900, 20_000), (50, 70_000)] * 4:
        work_s = 1e-3 + 1e-6 * tuples + 2e-7 * pairs
        sample = BatchSample(0.02 + work_s, work_s, work_s, tuples, pairs, pairs, pairs // 100)
        estimator = estimator.after(sample)
    known = MeasuredSubquery("join", "join", "scan", estimator)
    measured = QueryCalibration("f", 1_000, 16, 1, None, (known,), beside=estimator, facts={})
    Path("q.json").write_text(json.dumps(measured.recorded()))
    found = known.calibration()
    assert found is not None
    rates = trace((20, 100, 100))
    options = ("--trace", rates, "--window", "5 s", "--calibration", "q.json", "--sigma", "0.5")
    assert invoke(["simulate", *options]) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert f"alpha {found.alpha.value:g}, beta {found.beta.value:g}, sigma 0.5, " in shown
    batched = records(*options, "--batch", "100 ms")[-1]
    assert batched["latency_batch"] == pytest.approx(0.05 + 0.021, rel=0.1)


def test_a_calibration_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["simulate", "--experiment", "section7", "--calibration", "no.json"]) == 2
    assert capsys.readouterr().err == (
        "tidegate: --calibration: must be a calibration; got no such file no.json. `tidegate "
        "calibrate QUERY.sql --json FILE` writes one.\n"
    )
