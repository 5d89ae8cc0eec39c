"""Options are checked before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import OptionError
from tidegate.runtime.options import MAX_BUCKETS, RunOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": 0}, "--buckets: must be at least 1; got 0"),
        ({"buckets": MAX_BUCKETS + 1}, "--buckets: must be at most 65536; got 65537"),
        ({"batch_rows": 0}, "--batch-rows: must be at least 1; got 0"),
        ({"instances": 0}, "--instances: must be at least 1; got 0"),
        ({"instances": -2}, "--instances: must be at least 1; got -2"),
        ({"instances": 9, "buckets": 8}, r"--instances: must not exceed .* \(8\); got 9"),
        ({"switches": {-1: 2}}, "--switch: the batch must not be negative; got -1=2"),
        ({"switches": {1: 0}}, "--switch: the number of instances must be at least 1; got 1=0"),
        ({"switches": {1: 65}}, r"--switch: must not exceed .* \(64\); got 65"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RunOptions(**options)


def test_the_newest_switch_up_to_a_batch_counts() -> None:
    options = RunOptions(instances=2, switches={3: 4, 7: 1})
    asked = [options.instances_at(b) for b in (0, 2, 3, 6, 7, 100)]
    assert asked == [2, 2, 4, 4, 1, 1]
    assert RunOptions(switches={3: 4}).instances_at(2) is None


def test_a_query_starts_with_no_more_instances_than_buckets() -> None:
    assert RunOptions(default_instances=16, buckets=4).first_instances == 4
    assert RunOptions(default_instances=2, buckets=4).first_instances == 2
