"""What options say about instances, for all subqueries and for single ones."""

from __future__ import annotations

import pytest

from tidegate.cli.option.option import InstanceOptions, asked_instances
from tidegate.errors import OptionError


def test_nothing_asked() -> None:
    assert asked_instances([], []) == InstanceOptions(None, {}, {}, {})


def test_all_subqueries_and_single_ones() -> None:
    asked = asked_instances(
        ["join=2", "4", "aggregate2=1"], ["3=5", "join:3=6", "join:7=1", "aggregate2:0=2"]
    )
    assert asked == InstanceOptions(
        4, {3: 5}, {"join": 2, "aggregate2": 1}, {"join": {3: 6, 7: 1}, "aggregate2": {0: 2}}
    )


@pytest.mark.parametrize("text", ["", "x", "1.5", "join=", "join=x", "a=b=c", "2,3"])
def test_instances_that_are_no_number(text: str) -> None:
    with pytest.raises(OptionError, match="--instances: must be a whole number, or NAME=N; got"):
        asked_instances([text], [])


@pytest.mark.parametrize(
    "text", ["", "3", "3=", "=4", "x=4", "3=x", "join:=4", "join:x=4", "join:3"]
)
def test_switches_of_another_shape(text: str) -> None:
    with pytest.raises(OptionError, match="--switch: must look like BATCH=N, for example 3=4"):
        asked_instances([], [text])
