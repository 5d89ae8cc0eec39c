"""Campaigns add up; of a course that was wrong the explanation is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.fault_count import add


def test_campaigns_of_a_kind_add_up(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    add(file, "alone", 2, Counter(Slow=3), Counter(driver=1), ["seed 7"])
    add(file, "alone", 1, Counter(Slow=1, Killed=2), Counter(), [])
    add(file, "cluster", 1, Counter(), Counter(), [])
    content = json.loads(file.read_text())
    assert content["alone"] == {
        "courses": 3,
        "faults": {"Killed": 2, "Slow": 4},
        "kills": {"driver": 1},
        "wrong": {"seed 7": ""},
    }
    assert list(content) == ["alone", "cluster"]


def test_an_explanation_stays(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    add(file, "alone", 1, Counter(), Counter(), ["seed 7"])
    file.write_text(file.read_text().replace('"seed 7": ""', '"seed 7": "the power was off"'))
    add(file, "alone", 1, Counter(), Counter(), ["seed 7", "seed 8"])
    wrong = json.loads(file.read_text())["alone"]["wrong"]
    assert wrong == {"seed 7": "the power was off", "seed 8": ""}
