"""A running query as a Prometheus server sees it, and its log as JSON."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.deploy.grafana import expressions
from tests.prometheus.server import Prometheus, checked

SQL = """
CREATE STREAM rides FROM 'generator:taxi?pace=5000' TIME dropoff_time;
SELECT route, COUNT(*) AS n FROM rides [RANGE 1 SECONDS] GROUP BY route
"""
LINE = {"time", "level", "logger", "message"}


class Run:
    """The command line with a port for metrics, and its lines on standard error as objects."""

    def __init__(self, folder: Path) -> None:
        (folder / "taxi.sql").write_text(SQL)
        options = "--master none --follow --out out --checkpoint state --instances 2 --log info"
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tidegate", "run", "taxi.sql", *options.split()),
                *("--dashboard", "0", "--log-format", "json"),
            ],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def said(self, text: str) -> str:
        """What follows a text in a message, which is waited for."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(json.loads(line))
            if text in self.lines[-1]["message"]:
                return str(self.lines[-1]["message"].partition(text)[2])
        raise AssertionError(self.lines)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.stderr is not None
        self.lines += [json.loads(line) for line in self._process.stderr]
        return self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def run(tmp_path: Path) -> Any:
    made = Run(tmp_path)
    yield made
    made.kill()


def test_a_server_scrapes_a_running_query(run: Run, tmp_path: Path) -> None:
    url = f"{run.said('the dashboard is at ').partition(';')[0]}metrics"
    with Prometheus(tmp_path, re.findall(r"//(.*)/", url)[0]) as server:
        assert server.until("tidegate_batches_total > 3 and rate(tidegate_rows_in_total[2s]) > 0")
        labels = [dict(one) for one in server.instant('{__name__=~"tidegate_.*"}')]
        with urlopen(url) as answer:
            text = answer.read().decode()
        names = {one["__name__"] for one in labels}
        served = re.findall(r"^(tidegate_\w+)\{", text, re.MULTILINE)
        assert names <= set(served)
        assert len(names) > 40
        assert {one["query"] for one in labels} == {"taxi"}
        assert not [one for one in labels if any(name.startswith("exported_") for name in one)]
        assert set(server.instant("up").values()) == {1.0}
        # In Prometheus' own format there is no unit: it has taken OpenMetrics.
        (told,) = server.asked("targets/metadata", metric="tidegate_commit_seconds")
        assert (told["type"], told["unit"]) == ("histogram", "seconds")
        for expression in expressions():
            assert server.asked("query", query=expression)["resultType"] == "vector", expression
        assert server.instant("histogram_quantile(0.5, rate(tidegate_latency_seconds_bucket[5s]))")
    assert checked(text) == ""
    assert run.stop() == 130
    assert all(set(line) >= LINE for line in run.lines), run.lines
    (closing,) = (line for line in run.lines if "summary" in line)
    assert closing["summary"]["rows_in"] > 0
    assert run.lines[-1]["message"] == "Run the same command to continue."


def test_the_check_of_metrics_finds_what_is_wrong() -> None:
    wrong = "# TYPE tidegate_rows counter\n# HELP tidegate_rows Rows.\ntidegate_rows 1\n"
    assert 'counter metrics should have "_total" suffix' in checked(wrong)
