"""What a summary counts: the same for any batch size and instances, and no part above its whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import loop_of, memory, plan_of

ROWS = [(t / 40, f"k{t * t % 61 if t % 3 else 0}", t * 7 % 23) for t in range(600)]
WAYS = {"whole": (1000, 1), "three": (1000, 3), "cut": (70, 1), "both": (90, 3)}
WINDOW = "s [RANGE 4 SECONDS SLIDE 2 SECONDS]"
JOINED = "SELECT a.k FROM s AS a [RANGE 300 MILLISECONDS] JOIN s AS b [RANGE 300 MILLISECONDS] ON "
QUERIES = {
    "groups": f"SELECT k, SUM(v) AS v FROM {WINDOW} GROUP BY k",
    "split keys": f"SELECT k, SUM(v) AS v FROM {WINDOW} GROUP BY k WITH PARTITIONER pk",
    "shed by concept": f"SELECT k, SUM(v) AS v FROM {WINDOW} GROUP BY k WITH SHED 80 PERCENT",
    "shed, split keys": f"SELECT k, SUM(v) AS v FROM {WINDOW} GROUP BY k WITH SHED 80 PERCENT "
    "WITH PARTITIONER cam",
    "shed uniformly": f"SELECT SUM(v) AS v FROM {WINDOW} WITH SHED 80 PERCENT BY UNIFORM",
    "tuples": "SELECT k, SUM(v) AS v FROM s [ROWS 10 SLIDE 5] GROUP BY k",
    "equal": f"{JOINED} a.k = b.k",
    "band": f"{JOINED} ABS(a.v - b.v) <= 9",
    "either": f"{JOINED} ABS(a.v - b.v) <= 9 OR a.k = b.k",
    "neither": f"{JOINED} a.v <> b.v",
}
COUNTED = ("rows_in", "rows_out", "rows_late", "rows_rejected", "rows_shed", "comparisons")


def summary(sql: str, folder: Path, batch_rows: int, instances: int) -> dict[str, Any]:
    source = memory(*ROWS, end=True)
    loop = loop_of(plan_of(sql), [source], folder, batch_rows=batch_rows, instances=instances)
    return loop.run().as_dict()


@pytest.mark.parametrize("name", QUERIES)
def test_counts_are_the_same_for_any_batches_and_instances(name: str, tmp_path: Path) -> None:
    found = {way: summary(QUERIES[name], tmp_path / way, *of) for way, of in WAYS.items()}
    counts = {way: {n: of[n] for n in (*COUNTED, "groups_merged")} for way, of in found.items()}
    assert list(counts.values()) == [counts["whole"]] * len(WAYS)
    assert counts["whole"]["rows_in"] == len(ROWS)
    assert (counts["whole"]["rows_shed"] > 100) == name.startswith("shed")
    for of in found.values():
        assert of["compared"] <= of["comparisons"]
        assert all(one["compared"] <= one["comparisons"] for one in of["per_instance"])
        assert of["groups_split"] <= of["groups_merged"] <= of["parts_merged"]
    stored = [found[way]["state_rows_max"] for way in ("cut", "both")]
    assert min(stored) > 0, "it is told, although all windows are closed"
