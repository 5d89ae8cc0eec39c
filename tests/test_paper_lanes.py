"""Programs of the papers beside each other on many cores, and their results taken elsewhere."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.block import ROOT

SAY = """
import json, os, sys
print(sys.argv[1:], os.environ["TIDEGATE_BENCH_CPUS"])
sys.exit(3 if "wrong" in sys.argv else 0)
"""


PROGRAMS = tomllib.loads((ROOT / "benchmarks/papers/programs.toml").read_text(encoding="utf-8"))
SHORT_CPU_S = 60


def _short() -> list[str]:
    """As many programs as are done in so much processor time, the same ones each time."""
    here = [name for name, of in PROGRAMS.items() if "FOLDER" not in of["command"]]
    found, left_s = list[str](), SHORT_CPU_S
    for name in sorted(here, key=lambda name: PROGRAMS[name]["quick_cpu_s"]):
        left_s -= PROGRAMS[name]["quick_cpu_s"]
        found += [name] if left_s >= 0 else []
    return found


SHORT = _short()


@pytest.fixture(scope="module")
def of() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "benchmarks"))


def _program(of: Any, folder: Path, name: str, **more: Any) -> Any:
    file = folder / "say.py"
    file.write_text(SAY)
    given = {"minutes": 0.01, "quick": "", "quick_cpu_s": 0.0, **more}
    return of("paper_list").Program(name, f"{file} {name}", (name,), measures=(), **given)


def test_programs_get_cores_of_their_own_and_what_is_too_long_is_left(
    of: Any, tmp_path: Path
) -> None:
    lanes = of("paper_lanes")
    made = [
        _program(of, tmp_path, "short"),
        _program(of, tmp_path, "wrong"),
        _program(of, tmp_path, "wide", beside=4, minutes=0.02),
        _program(of, tmp_path, "long", minutes=99.0),
    ]
    assert [one.name for one in lanes.in_order(made)] == ["wide", "long", "short", "wrong"]
    begun: list[str] = []
    runs = lanes.Lanes(lanes.lanes_of(list(range(6)), 3), 0.5, tmp_path)
    assert runs.run(made, lambda one: begun.append(one.name)) == ["wrong"]
    assert begun == ["wide", "short", "wrong"]
    said = {name: (tmp_path / f"{name}.log").read_text().strip() for name in begun}
    assert said["wide"] == "['wide', '--beside', '3'] 0,1,2,3,4,5"
    cores = {said[name].rpartition(" ")[2] for name in ("short", "wrong")}
    assert len(cores) == 2
    assert cores <= {"0,1", "2,3", "4,5"}
    with pytest.raises(SystemExit, match="needs 6 cores; got 4"):
        lanes.lanes_of([0, 1, 2, 3], 3)


def test_what_is_late_is_killed(of: Any, tmp_path: Path) -> None:
    lanes = of("paper_lanes")
    (tmp_path / "say.py").write_text("import threading\nthreading.Event().wait()\n")
    late = of("paper_list").Program("late", f"{tmp_path / 'say.py'}", (), 0.0, (), "", 0.0)
    runs = lanes.Lanes([(0, 1)], 0.02, tmp_path)
    assert runs.run([late], lambda _: None) == ["late"]


def test_results_of_another_machine_are_noted_with_what_they_measured(
    of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes, index, runs = of("paper_take"), of("paper_index"), of("paper_runs")
    there, here = tmp_path / "there", tmp_path / "here"
    for root in (there, here):
        (root / "benchmarks" / "results").mkdir(parents=True)
        (root / "docs").mkdir()
        (root / "benchmarks" / "written.json").write_text("{}")

    def work_in(root: Path) -> None:
        results = root / "benchmarks" / "results"
        monkeypatch.setattr(takes, "ROOT", root)
        for module in (takes, index, runs):
            monkeypatch.setattr(module, "RESULTS", results)
        for module in (takes, runs):
            monkeypatch.setattr(module, "MARKERS", root / "markers")
        monkeypatch.setattr(index, "INDEX", root / "benchmarks" / "written.json")

    work_in(there)
    marker = there / "markers" / "stretch_model"
    marker.parent.mkdir()
    marker.touch()
    os.utime(marker, ns=(1, 1))
    (there / "benchmarks" / "results" / "stretch_model.json").write_text('{"made": true}')
    (there / "docs" / "drawn.svg").write_text("<svg/>")
    index.keep("stretch_model", index.modules_digest(index.measured()["stretch_model"]), "")
    assert takes.pack(tmp_path / "papers.tar.gz") == ["stretch_model"]

    work_in(here)
    assert takes.take(tmp_path / "papers.tar.gz") == ["stretch_model"]
    kept = json.loads((here / "benchmarks" / "written.json").read_text())["stretch_model"]
    assert kept["result"] == index.result_digest("stretch_model")
    assert kept["commit"] == index.commit() != ""
    assert not index.is_stale("stretch_model")
    assert (here / "docs" / "drawn.svg").read_text() == "<svg/>"


def test_a_quick_run_finds_a_result_that_lacks_what_a_page_reads(of: Any, tmp_path: Path) -> None:
    runs, listed = of("paper_runs"), of("paper_list")
    program = listed.programs()["stretch_model"]
    assert runs.run_quick(program) == ""
    (tmp_path / "stretch_model.json").write_text("{}")
    assert "must have figure 3/virtual/scales_to" in runs._unread(program, tmp_path)
    names = [one.name for one in runs.quick_ones([])]
    assert names == list(listed.programs())
    assert {one.name for one in runs.quick_ones(["scalejoin-6"])} == {"handshake"}


def test_what_a_picture_or_a_ratio_reads_is_looked_for_too(of: Any, tmp_path: Path) -> None:
    runs, listed = of("paper_runs"), of("paper_list")
    program = listed.programs()["sample_rates"]
    assert runs.run_quick(program) == ""
    found = json.loads((of("measure").RESULTS / "sample_rates.json").read_text())
    del found["families"]["zipf"]["exponent 1.5"]  # it is only drawn
    (tmp_path / "sample_rates.json").write_text(json.dumps(found))
    assert "families/zipf/exponent 1.5" in runs._unread(program, tmp_path)


@pytest.mark.parametrize("name", SHORT)
def test_programs_run_on_tiny_input_and_give_what_the_pages_read(of: Any, name: str) -> None:
    """The others: `python benchmarks/paper_runs.py --quick`."""
    assert of("paper_runs").run_quick(of("paper_list").programs()[name]) == ""


def test_what_runs_on_tiny_input_here_takes_a_minute_or_so() -> None:
    assert len(SHORT) >= 13
    assert sum(PROGRAMS[name]["quick_cpu_s"] for name in SHORT) <= SHORT_CPU_S


def test_the_page_says_what_all_of_them_take() -> None:
    minutes = sum(of["quick_cpu_s"] for of in PROGRAMS.values()) / 60
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    said = re.search(r"about (\d+) minutes of processor time for all programs", text)
    assert said is not None
    assert abs(int(said[1]) - minutes) <= 2


def test_programs_of_many_cores_run_in_turn_while_the_time_suffices(
    of: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = of("paper_runs")
    program = _program(of, tmp_path, "short", cores=16, minutes=2.0)
    assert runs.run_all([program], tmp_path / "at", tmp_path, minutes=1.0) == []
    assert "short: needs about 2 minutes, left for later" in capsys.readouterr().out
    assert not (tmp_path / "at" / "short").exists()
    assert runs.run_all([program], tmp_path / "at", tmp_path, minutes=3.0) == ["short"]
    assert (tmp_path / "at" / "short").exists()
