"""What docs/autoscale.md says of `auto` beside other controllers is what the benchmark found."""

from __future__ import annotations

import json
from pathlib import Path

REPORT = json.loads(Path("benchmarks/results/controller.json").read_text(encoding="utf-8"))
LOADS = {name: of["controllers"] for name, of in REPORT["loads"].items()}
OTHERS = ("model", "threshold", "flink", "databricks")


def test_it_holds_the_target_and_the_error_over_every_load() -> None:
    assert len(LOADS) == 26
    assert sum(of["held_out"] for of in REPORT["loads"].values()) == 10
    assert all(of["auto"]["held"] >= 0.99 for of in LOADS.values())
    assert max(of["auto"]["error_most"] for of in LOADS.values()) <= 0.05


def test_it_costs_little_more_than_a_clairvoyant_schedule() -> None:
    dear = [name for name, of in LOADS.items() if of["auto"]["times_clairvoyant"] > 1.15]
    assert dear == ["trades"]


def test_others_that_hold_the_target_cost_more() -> None:
    cheaper = {
        (name, other)
        for name, of in LOADS.items()
        for other in OTHERS
        if of[other]["held"] >= 0.99
        and of[other]["instance_seconds"] < of["auto"]["instance_seconds"]
    }
    assert not cheaper


def test_reversals_are_few() -> None:
    often = [name for name, of in LOADS.items() if of["auto"]["reversals"] > 1]
    assert often == ["trades"]
