"""How many courses and faults all campaigns had together, kept in a file.

Campaigns add to it where they are told `--count benchmarks/results/faults.json`, and
`python benchmarks/tables.py` brings it into docs/determinism.md. A course that was wrong is listed
by its seed; it is unexplained until somebody writes beside it, in the file, what was the matter.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class FaultCount:
    """The sum over campaigns of one kind; grows with kinds of faults, and with wrong courses."""

    courses: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    """Of real processes, by what they do."""
    wrong: dict[str, str] = field(default_factory=dict)
    """By seed what was the matter, empty where nobody knows."""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> FaultCount:
        faults, kills = Counter(content["faults"]), Counter(content["kills"])
        return cls(content["courses"], faults, kills, dict(content["wrong"]))

    def add(
        self, courses: int, faults: Counter[str], kills: Counter[str], wrong: Sequence[str]
    ) -> None:
        self.courses += courses
        self.faults.update(faults)
        self.kills.update(kills)
        self.wrong |= {seed: self.wrong.get(seed, "") for seed in wrong}

    def as_dict(self) -> dict[str, Any]:
        counters = {"faults": self.faults, "kills": self.kills, "wrong": self.wrong}
        ordered = {name: dict(sorted(one.items())) for name, one in counters.items()}
        return {"courses": self.courses, **ordered}


def read(file: Path) -> dict[str, FaultCount]:
    """The sums by kind of campaign; none where there is no file yet."""
    content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {kind: FaultCount.of(one) for kind, one in content.items()}


def add(
    file: Path,
    kind: str,
    courses: int,
    faults: Counter[str],
    kills: Counter[str],
    wrong: Sequence[str],
) -> None:
    """Add a campaign to the file."""
    counts = read(file)
    counts.setdefault(kind, FaultCount()).add(courses, faults, kills, wrong)
    content = {kind: counts[kind].as_dict() for kind in sorted(counts)}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
