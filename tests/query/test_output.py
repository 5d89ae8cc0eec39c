"""Outputs by name: which names there may be, and the only one where there is one place."""

from __future__ import annotations

import pytest

from tests.query.catalog import CALLS, RIDES
from tidegate.errors import QueryError
from tidegate.query.node.node import Input
from tidegate.query.output import Output, check_names, single


@pytest.mark.parametrize("name", [None, "a", "Totals_2", "x1"])
def test_names_of_outputs(name: str | None) -> None:
    assert Output(name, Input(RIDES)).name == name


@pytest.mark.parametrize("name", ["", "_late", "1st", "a b", "../b", "batch=1", "é", "a\n"])
def test_names_that_are_no_folder_everywhere(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        Output(name, Input(RIDES))
    assert str(caught.value) == (
        f"output: a name must be letters, digits and _, and begin with a letter; got {name}. "
        "Give the output another name."
    )


def test_several_outputs_differ_in_more_than_case() -> None:
    check_names(["a", "b", "ab"])
    with pytest.raises(QueryError) as caught:
        check_names(["totals", "b", "Totals"], "INSERT INTO")
    assert str(caught.value) == (
        "INSERT INTO: a name can be used once; got Totals twice. "
        "Give one of the outputs another name, or make both one with UNION ALL."
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "output: a query needs at least one; got none."),
        (["a", None], "output: each of several needs a name; got one without."),
        (
            ["a", "_b"],
            "output: a name must be letters, digits and _, and begin with a letter; got "
            "_b. Give the output another name.",
        ),
    ],
)
def test_several_outputs_have_names(names: list[str | None], message: str) -> None:
    check_names([None])
    with pytest.raises(QueryError) as caught:
        check_names(names)
    assert str(caught.value) == message


def test_the_only_output() -> None:
    one, other = Output("a", Input(RIDES)), Output("b", Input(CALLS))
    assert single([one]) == Input(RIDES)
    with pytest.raises(QueryError) as caught:
        single([one, other])
    assert str(caught.value) == (
        "output: one result is possible here; got 2: a, b. "
        "Leave the others out, or take them all with Session.queries and Session.start."
    )
