"""The highest rate that a query sustains: by a made-up query, on one of its own, and as told."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.cli.command import sustainable as surface
from tidegate.cli.main import invoke
from tidegate.model.sizing.rate_search import CLOSE, RateSearch, highest_rate
from tidegate.session.calibration.sustain import RateTry, SustainSetup, paced
from tidegate.session.place import NO_SPARK, Place
from tidegate.testing import ManualClock


class MadeUp:
    """Stands for a loop whose batches take a fixed time, and as much for each row."""

    def __init__(self, clock: ManualClock, capacity: float, rows: int) -> None:
        self.clock, self.capacity, self.left, self.size = clock, capacity, rows, 0
        self.controls = SimpleNamespace(ask_rows=self.ask)
        self.manifest = SimpleNamespace(finished=False)

    def ask(self, rows: int) -> None:
        self.size = rows

    def step(self) -> Any:
        rows = min(self.size, self.left)
        self.left -= rows
        self.manifest.finished = not self.left
        self.clock.sleep(0.01 + rows / self.capacity)
        return SimpleNamespace(rows_in=rows)


def tried(capacity: float, rows: int, within_s: float, rate: float) -> RateTry:
    clock = ManualClock()
    setup = SustainSetup(None, Place(NO_SPARK), 20.0, within_s, clock)  # type: ignore[arg-type]
    return paced(MadeUp(clock, capacity, rows), setup, 1, rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("capacity", [90.0, 1_000.0, 40_000.0])
def test_the_highest_rate_is_what_the_query_can_do(capacity: float) -> None:
    """Batches grow with the rate, so nearly all of the capacity is for rows."""
    found = highest_rate(
        partial(tried, capacity, 10**7, 1.0), lambda one: one.sustained, 700.0, tries=16
    )
    assert found.best is not None
    assert capacity / CLOSE / 1.1 <= found.best.rate <= capacity * 1.05
    fast = [one for one in found.tries if one.rate > 1.1 * capacity]
    assert fast
    assert not any(one.sustained for one in fast)


def test_a_rate_is_not_sustained_where_answers_are_late_or_rows_pile_up() -> None:
    assert tried(1_000.0, 10**6, 1.0, 500.0).sustained
    late = tried(1_000.0, 10**6, 0.005, 500.0)
    assert not late.sustained
    assert late.p99_ms > 5
    behind = tried(1_000.0, 10**6, 1.0, 1_500.0)
    assert not behind.sustained
    assert behind.waiting_rows > 1_500


def test_a_short_input_ends_the_search() -> None:
    one = tried(1_000.0, 100, 1.0, 400.0)
    assert (one.rows, one.short, one.sustained) == (100, True, True)
    found = highest_rate(
        partial(tried, 1_000.0, 100, 1.0), lambda t: t.sustained, 400.0, 9, lambda t: t.short
    )
    assert len(found.tries) == 1


def test_a_query_is_measured_and_told_as_a_table_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One real try of each number of instances, and a search that ends with it."""
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(
        "CREATE STREAM r FROM 'generator:taxi?rows=60000' TIME dropoff_time;\n"
        "SELECT COUNT(*) AS n FROM r [RANGE 1 MINUTE];"
    )
    seen: list[tuple[int, float, float]] = []

    def once(setup: SustainSetup, instances: int) -> RateSearch[RateTry]:
        from tidegate.session.calibration.sustain import attempted

        seen.append((instances, setup.seconds, setup.within_s))
        one = attempted(SustainSetup(setup.plan, setup.place, 0.3, 10.0), instances, 2_000.0)
        return RateSearch(one, (one,))

    monkeypatch.setattr(surface, "sustainable", once)
    command = ["plan", "q.sql", "--master", "none", "--sustainable", "--instances", "3"]
    assert invoke([*command, "--seconds", "2", "--latency", "250 ms"]) == 0
    said = capsys.readouterr().out
    assert "with 99 of 100 answers within 0.25 s, tried for 2 s" in said
    assert said.count(" 2,000 ") == 3
    assert invoke([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["instances"]) == ["1", "2", "3"]
    assert told["instances"]["3"]["rate"] == 2_000
    assert told["instances"]["3"]["tries"][0]["rows"] > 100
    assert [count for count, _, _ in seen] == [1, 2, 3] * 2
    assert seen[0][1:] == (2, 0.25)
    assert seen[-1][1:] == (5, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--seconds", "3"],
            "--seconds: needs --sustainable; got none. Add it, or drop --seconds.",
        ),
        (
            ["--sustainable", "--rate", "5"],
            "--sustainable: cannot be used with --rate; got both. Leave --rate out: the highest "
            "rate is what is searched for.",
        ),
        (
            ["--sustainable", "--trigger", "1 second"],
            "--trigger: cannot be used with --sustainable; got both. Leave --trigger out: rates "
            "are measured.",
        ),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = tmp_path / "q.sql"
    query.write_text("SELECT 1")
    assert invoke(["plan", str(query), "--master", "none", *options]) == 2
    assert message in capsys.readouterr().err
