"""The comparison with other engines: what is run, where engines are found, and what tables say."""

from __future__ import annotations

import importlib
import json
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
    package = tmp_path / "flink" / "apache_flink-2.3.0.dist-info"
    package.mkdir(parents=True)
    assert not engine.is_there()
    (package / "RECORD").touch()
    assert engine.is_there()
    assert engine.command("{}")[0] == sys.executable
    assert engine.environment(2)["PYTHONPATH"].startswith(f"{tmp_path / 'flink'}:")
    python = tmp_path / "flink" / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert engine.command("{}")[0] == str(python)
    assert str(tmp_path / "flink") not in engine.environment(2)["PYTHONPATH"]


def test_an_installation_that_failed_is_none(
    of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = of("peer_engine")
    python = tmp_path / "flink" / "bin" / "python"
    python.parent.mkdir(parents=True)
    monkeypatch.setattr(engines, "PACKAGES", {"flink": "apache-flink"})
    there = []
    for code in (1, 0, 1):
        python.write_text(f"#!/bin/sh\nexit {code}\n")
        python.chmod(0o755)
        failed = engines.set_up(tmp_path)
        there.append((failed, engines.Engine("flink", tmp_path).is_there()))
    assert there == [(["flink"], False), ([], True), (["flink"], False)]


def test_files_of_flink_are_in_order_and_have_all_rows(of: Any, tmp_path: Path) -> None:
    ts = pa.array(range(0, 70_000, 10_000)).cast(pa.timestamp("us"))
    rows = pa.table({"ts": ts, "key": list(range(7)), "v": [0.5] * 7})
    of("peers").write_parts(rows, tmp_path, 2)
    lines = [file.read_text().splitlines() for file in sorted(tmp_path.iterdir())]
    assert [len(of) for of in lines] == [4, 3]
    assert all(of == sorted(of) for of in lines)
    assert [line.split(",")[1] for of in lines for line in of] == [*"0246", *"135"]


def test_cases_are_merged_into_the_result_of_as_many_rows(
    of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers, written = of("peers"), []
    monkeypatch.setattr(peers, "RESULTS", tmp_path)
    monkeypatch.setattr(peers, "write_report", lambda _, content: written.append(content))
    before = {"rows": 9, "rounds": 3, "cases": {"band": {"a": 1, "b": 2}, "median": {"a": 3}}}
    (tmp_path / "peers.json").write_text(json.dumps(before))
    some = {**before, "cases": {"band": {"a": 5}, "tiny": {"a": 6}}}
    peers.keep("peers", some)
    assert written.pop()["cases"] == {
        "band": {"a": 5, "b": 2},
        "median": {"a": 3},
        "tiny": {"a": 6},
    }
    peers.keep("peers", {**some, "rows": 8})
    assert written == []
    peers.keep("peers", {**before, "rows": 8})
    assert written.pop()["rows"] == 8


def test_a_section_says_how_often_and_where_it_ran(of: Any) -> None:
    early = {"date": "2026-11-19 21:00 UTC", "commit": "abc"}
    late = {"date": "2026-11-20 01:00 UTC", "commit": "def"}
    cases = {"band": {"own": early, "other": {"cannot": "no"}}, "asof": {"own": early}}
    report = {"used_cores": 16, "rounds": 3, "cpu": "Xeon", "cases": cases}
    said = "The median of 3 runs on 16 cores (`--cores 16`), with the least and the most; Xeon"
    assert next(of("peers").section(report)) == f"{said}, 2026-11-19 21:00 UTC, commit abc:"
    more = {**report, "cases": {**cases, "tiny": {"own": late}}}
    assert next(of("peers").section(more)) == (
        f"{said}, band, asof: 2026-11-19 21:00 UTC, commit abc; "
        "tiny: 2026-11-20 01:00 UTC, commit def:"
    )
    one = next(of("peers").section({**report, "used_cores": 2, "rounds": 1}))
    assert one.startswith("One run on 2 cores; Xeon")


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
    merged = {**cases, "asof": {"own": {"cannot": "no"}}}
    assert list(peers.table(merged))[3] == "| asof | - | - | - |"
    assert list(peers.settings_table(merged))[2] == "| own | 1 | two | asof: no |"


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
