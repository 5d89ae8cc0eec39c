"""Chaos with several queries under a budget: some seeds here, and what the program found in 300."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tidegate.elastic.auto import machine

REPORT = Path("benchmarks/results/controller_chaos.json")
PAGE = Path("docs/autoscale.md")


@pytest.fixture(scope="module")
def chaos() -> ModuleType:
    """The program in benchmarks/, which import each other by their names alone."""
    sys.path.insert(0, str(Path("benchmarks").resolve()))
    try:
        import controller_chaos
    finally:
        sys.path.pop(0)
    module: ModuleType = controller_chaos
    return module


def test_some_minutes(chaos: ModuleType) -> None:
    every = [chaos.run(420, seed) for seed in range(6)]
    assert [told.wrong for told in every] == [""] * 6
    assert [told.queries for told in every] == [1, 2, 3, 1, 2, 3]
    assert all(told.decisions > 5 and told.most <= told.budget for told in every)
    assert any(told.most == told.budget for told in every), "what there is does not suffice"
    kinds = sum((Counter(told.faults) for told in every), Counter[str]())
    assert min(kinds.values()) > 0
    assert set(kinds) == {"slow", "pause", "retry", "fewer slots", "clock", "missing"}


def test_it_is_wrong_to_be_late_for_no_reason(
    chaos: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that does not say why; how late it is, it says still, and that is no reason."""
    said = chaos.run(420, 2)
    assert (said.wrong, said.said_why > 0) == ("", True)
    monkeypatch.setattr(machine, "_stuck", lambda memory, case: "")
    silent = chaos.run(420, 2)
    assert silent.wrong.endswith(f" s at the end, 0 of {said.said_why} said why")


def test_it_is_wrong_to_be_late_where_there_is_enough(
    chaos: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without remedies says why; in a mild world that does not help."""
    mild = chaos.WORLDS["mild"]
    assert chaos.run(900, 0, mild).wrong == ""
    monkeypatch.setattr(machine, "ORDER", ())
    broken = [chaos.run(900, seed, mild) for seed in (0, 1, 2)]
    assert any(told.wrong.endswith(" said why") for told in broken)


def test_an_hour_of_three_hundred_seeds_had_nothing_wrong_but_what_the_page_names() -> None:
    """`python benchmarks/controller_chaos.py` writes it.

    Three queries still worked off a backlog in the last half minute, and gave no reason.
    """
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    assert (report["seeds"], report["simulated_seconds"]) == (300, 3600)
    assert list(report["wrong"]) == ["50", "168", "239"]
    assert "seeds 50, 168 and 239" in PAGE.read_text(encoding="utf-8")
    ended = report["within_target_at_the_end"] + report["late_and_said_why"]
    assert ended + len(report["wrong"]) == report["queries"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300, 310))
def test_an_hour(chaos: ModuleType, seed: int) -> None:
    assert chaos.run(3600, seed).wrong == ""
