"""The new metric that CONTRIBUTING.md shows: one file and one line, and it is told everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.docs.package_copy import PackageCopy, blocks

PROGRAM = """
import json, sys
import tidegate as tg
from rich.console import Console
from tidegate.cli.command.ctl import status_text
from tidegate.cli.live.view import LiveView
from tidegate.driver.exposition.observer import MetricsObserver
from tidegate.driver.exposition.text import PLAIN, written
from tidegate.driver.report.status import status_of
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.cli.option.option import read_query
from tidegate.cli.option.query_text import QueryText
from tidegate.driver.options import RunOptions
from tidegate.sink.memory import MemorySink

def run(batches):
    place = Place.at("none")
    plan = plan_for(read_query(QueryText.of_file("q.sql"), (), ()), place)
    view = LiveView(Console(width=100, file=sys.stderr), "q")
    options = RunOptions(instances=2, batch_rows=300)
    loop = prepare(plan, place, {None: MemorySink()}, options, "state", on_batch=view.batch)
    observer = MetricsObserver(loop)
    observer.begin()
    view.continue_from(loop.summary.counters)
    reports = [loop.step() for _ in range(batches)]
    console = Console(width=100, record=True, file=open("view", "w"))
    console.print(view.picture())
    told = {
        "reports": [report.groups_closed for report in reports],
        "status": status_of(loop)["groups_closed"],
        "ctl": status_text(status_of(loop)),
        "view": console.export_text(),
        "text": loop.summary.text(),
        "summary": loop.summary.as_dict()["groups_closed"],
        "rows_out": loop.summary.as_dict()["rows_out"],
        "metrics": written({"q": observer}, PLAIN),
    }
    loop.close()
    return told

print(json.dumps([run(2), run(3)]))
"""
SQL = """
CREATE STREAM rides FROM 'generator:taxi?rows=2000&rate=2' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM rides [RANGE 60 SECONDS] GROUP BY route
"""


@pytest.fixture
def package(tmp_path: Path) -> PackageCopy:
    (file,), (line,) = (blocks("A new metric", language) for language in ("python", "text"))
    copy = PackageCopy(tmp_path)
    copy.add_file(f"driver/metric/{json.loads(line.strip().removesuffix(','))}.py", file)
    copy.add_line("driver/metric/registry.py", "FILES = (\n", line)
    return copy


def test_it_is_told_wherever_a_run_is(package: PackageCopy, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(SQL)
    first, second = (dict[str, Any](run) for run in package.printed(PROGRAM, tmp_path))
    for told, before in ((first, 0), (second, first["summary"])):
        assert told["summary"] == before + sum(told["reports"]) > before, "a restart goes on"
        assert told["summary"] == told["rows_out"], "a group is a row here"
        assert told["status"] == told["summary"]
        for place in ("text", "ctl"):
            assert f"groups closed {told['summary']:,}" in told[place].splitlines()
        assert f"groups closed         {told['summary']:,}" in told["view"]
        assert f'tidegate_groups_closed_total{{query="q"}} {told["summary"]}' in told["metrics"]
    files = package.touched()
    assert files.pop("driver/metric/registry.py") == 1
    assert list(files) == ["driver/metric/groups.py"]
