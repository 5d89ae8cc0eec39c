"""Options are checked before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.driver.options import MAX_BUCKETS, RunOptions
from tidegate.errors import OptionError


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
        ({"subquery_instances": {"join": 0}}, "--instances: must be at least 1; got 0"),
        ({"subquery_instances": {"a": 2, "b": 65}}, r"--instances: must not exceed .*; got 65"),
        ({"subquery_switches": {"a": {-1: 2}}}, "--switch: the batch must not be negative; got -1"),
        ({"subquery_switches": {"a": {0: 2}, "b": {1: 0}}}, "--switch: .* at least 1; got 1=0"),
        ({"subquery_switches": {"a": {1: 65}}}, r"--switch: must not exceed .* \(64\); got 65"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        RunOptions(**options)


def test_the_newest_switch_up_to_a_batch_counts() -> None:
    options = RunOptions(instances=2, switches={3: 4, 7: 1})
    asked = [options.instances_at(b, "join") for b in (0, 2, 3, 6, 7, 100)]
    assert asked == [2, 2, 4, 4, 1, 1]
    assert RunOptions(switches={3: 4}).instances_at(2, "join") is None


def test_what_is_asked_for_one_subquery_goes_before_what_is_asked_for_all() -> None:
    options = RunOptions(
        instances=2,
        switches={3: 4, 7: 1},
        subquery_instances={"join": 5},
        subquery_switches={"join": {3: 6, 5: 7}, "aggregate": {1: 8}},
    )
    batches = (0, 1, 3, 5, 7)
    assert [options.instances_at(b, "join") for b in batches] == [5, 5, 6, 7, 1]
    assert [options.instances_at(b, "aggregate") for b in batches] == [2, 8, 4, 4, 1]
    assert [options.instances_at(b, "process") for b in batches] == [2, 2, 4, 4, 1]


def test_one_subquery_alone_may_be_asked_for() -> None:
    options = RunOptions(subquery_instances={"join": 5}, subquery_switches={"process": {2: 3}})
    assert [options.instances_at(b, "join") for b in (0, 2)] == [5, 5]
    assert [options.instances_at(b, "process") for b in (0, 2)] == [None, 3]
    assert options.instances_at(2, "aggregate") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"subquery_instances": {"joins": 5}},
            "--instances: must name a subquery of the query; got joins. Did you mean join? "
            "There are: aggregate, join.",
        ),
        (
            {"subquery_switches": {"join": {1: 1}, "top": {1: 1}}},
            "--switch: must name a subquery of the query; got top. There are: aggregate, join.",
        ),
    ],
)
def test_names_that_the_query_does_not_have(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        RunOptions(**options).check_subqueries(["aggregate", "join"])
    assert str(caught.value) == message


def test_instances_that_subqueries_share_are_asked_for_without_a_name() -> None:
    with pytest.raises(OptionError) as caught:
        RunOptions(subquery_switches={"join": {1: 2}}).check_subqueries(["join"], shared=True)
    assert str(caught.value) == (
        "--switch: the strategy query-cloud has one number of instances for the whole query; got "
        "one for join. Leave the subquery out, or use another --strategy."
    )
    RunOptions(instances=3, switches={1: 2}).check_subqueries(["join"], shared=True)


def test_names_that_the_query_has() -> None:
    """In a query without one of them they are refused, so that it is the names that count."""
    options = RunOptions(
        subquery_instances={"join": 5}, subquery_switches={"aggregate": {1: 1}, "join": {2: 3}}
    )
    options.check_subqueries(["aggregate", "join", "process"])
    with pytest.raises(OptionError, match="got aggregate"):
        options.check_subqueries(["join", "process"])


def test_a_query_starts_with_no_more_instances_than_buckets() -> None:
    assert RunOptions(default_instances=16, buckets=4).first_instances == 4
    assert RunOptions(default_instances=2, buckets=4).first_instances == 2
