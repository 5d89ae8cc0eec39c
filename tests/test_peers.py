"""The comparison with other engines: what is run, where engines are found, and what tables say."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.docs.block import ROOT


@pytest.fixture(scope="module")
def of() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "benchmarks"))


def test_engines_take_turns_at_what_they_can_do(of: Any) -> None:
    names = of("peers").in_turns(["tidegate", "spark", "flink"], ["band", "sliding"], 2)
    once = ["band tidegate", "sliding tidegate", "sliding spark", "sliding flink"]
    assert names == [f"{number} {name}" for number in (0, 1) for name in once]


def test_packages_in_a_folder_are_for_the_python_that_runs(of: Any, tmp_path: Path) -> None:
    engine = of("peer_engine").Engine("flink", tmp_path)
    assert not engine.is_there()
    (tmp_path / "flink").mkdir()
    assert engine.is_there()
    assert engine.command("{}")[0] == sys.executable
    assert engine.environment(2)["PYTHONPATH"].startswith(f"{tmp_path / 'flink'}:")
    python = tmp_path / "flink" / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert engine.command("{}")[0] == str(python)
    assert str(tmp_path / "flink") not in engine.environment(2)["PYTHONPATH"]


def test_a_table_says_median_and_spread_and_what_is_wrong(of: Any) -> None:
    peers = of("peers")
    told = {"version": "1", "settings": "two", "same_rows": False, "rows": 3}
    runs = [{**told, "seconds": s} for s in (2.0, 1.0, 4.0)]
    found = peers.summed_up("sliding", runs, 100_000)
    assert found["rows_per_second"] == {"median": 50_000, "low": 25_000, "high": 100_000}
    assert peers.summed_up("sliding", [*runs, {"failed": "it broke"}], 9) == {"failed": "it broke"}
    cases = {"sliding": {"own": found, "other": {"failed": "it broke"}, "third": {"cannot": "no"}}}
    assert list(peers.table(cases))[2] == "| sliding | 50 (25 to 100) (other rows) | it broke | - |"
    assert list(peers.settings_table(cases))[2:] == [
        "| own | 1 | two | - |",
        "| other | - | - | - |",
        "| third | - | - | sliding: no |",
    ]


def test_rows_of_a_growing_file_count_when_their_line_is_whole(of: Any, tmp_path: Path) -> None:
    lines, file = of("peer_live").Lines("rows.csv", more=1), tmp_path / "rows.csv"
    lines.look(tmp_path)
    file.write_text('end_us,key,mean,n,time\n"1000","a","0.5","7","99"\n1000,b,0.')
    lines.look(tmp_path)
    assert [rows for _, rows in lines.seen.values()] == [7]
    before_s = lines.seen[1000][0]
    file.open("a").write("5,3,99\n")
    lines.look(tmp_path)
    assert lines.seen[1000][1] == 10
    assert lines.seen[1000][0] >= before_s


def test_windows_that_lack_rows_are_counted_and_those_that_do_not_come_fail(of: Any) -> None:
    live = of("peer_live")
    whole, first_s = live.RATE * live.RANGE_S, 1_000 + live.WARM_S
    ends_s = range(first_s, first_s + live.SECONDS)
    seen = {end_s * 1_000_000: (end_s + 0.15, whole) for end_s in ends_s}
    seen[first_s * 1_000_000] = (first_s + 0.15, whole - 1)
    found = live._figures(seen, 1_000.0)
    assert found["lacking"] == 1
    assert found["latency_ms"]["p50"] == pytest.approx(50, abs=0.01)
    del seen[first_s * 1_000_000]
    assert "failed" in live._figures(seen, 1_000.0)


def test_live_rows_are_due_in_their_file_and_in_equal_numbers_of_keys(of: Any) -> None:
    live = of("peer_live")
    second = pa.concat_tables(live._rows(n, 50.0) for n in range(live.FILES_PER_S))
    ts = second["ts"].cast(pa.int64()).to_pylist()
    assert (ts[0], len(ts)) == (50_000_000, live.RATE)
    assert ts == sorted(ts)
    assert ts[-1] < 51_000_000
    assert second["key"].value_counts().field("counts").unique().to_pylist() == [
        live.RATE // live.KEYS
    ]
