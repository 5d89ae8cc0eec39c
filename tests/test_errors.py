"""Errors on their way through a file."""

from __future__ import annotations

import json

import pytest

from tidegate.errors import GateError, RunError, SourceError, TidegateError


@pytest.mark.parametrize("kind", [GateError, SourceError])
def test_an_error_that_is_told_by_way_of_a_file_is_the_same(kind: type[TidegateError]) -> None:
    error = kind("rides.csv", "must be there", None, "Put it back.")
    again = TidegateError.from_dict(json.loads(json.dumps(error.to_dict())))
    assert type(again) is kind
    assert again.args == error.args
    assert str(again) == "rides.csv: must be there. Put it back."


def test_a_kind_that_is_not_in_the_tree_is_a_failure_of_the_run() -> None:
    fields = {**GateError("a", "b").to_dict(), "kind": "KeyError"}
    assert type(TidegateError.from_dict(fields)) is RunError
