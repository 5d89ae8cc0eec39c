"""Names inside expressions: resolution, substitution, conjuncts."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot import parse_one as parse_any

from tidegate.errors import QueryError
from tidegate.query.name import (
    canonical,
    conjuncts,
    distinct_names,
    find_name,
    spark_name,
    substitute,
)


def parse_one(text: str, read: str | None = None) -> exp.Expression:
    tree = parse_any(text, read=read)
    assert isinstance(tree, exp.Expression)
    return tree


def test_a_name_is_exact_or_differs_in_case_alone() -> None:
    assert find_name("Fare", ["fare", "Fare"]) == "Fare"
    assert find_name("FARE", ["fare"]) == "fare"
    assert find_name("FARE", ["fare", "Fare"]) is None
    assert find_name("tip", ["fare"]) is None


def test_canonical_names_and_unknown_ones() -> None:
    tree = parse_one("FARE + `Tip` * 2", read="spark")
    assert canonical(tree, ["fare", "tip"], "SELECT").sql() == "fare + tip * 2"
    with pytest.raises(QueryError) as caught:
        canonical(tree, ["fare", "trip"], "SELECT")
    assert str(caught.value) == (
        "SELECT: no column has this name; got Tip. Did you mean trip? There are: fare, trip."
    )
    with pytest.raises(QueryError, match=r"a qualified column needs a join; got left\.x"):
        canonical(parse_one("left.x", read="spark"), ["x"], "WHERE")


def test_substitution_keeps_the_meaning() -> None:
    put = {"a": parse_one("b + 1"), "b": parse_one("a OR c"), "c": parse_one("UPPER(d)")}
    assert substitute(parse_one("a * 2"), put).sql() == "(b + 1) * 2"
    assert substitute(parse_one("b AND c = a"), put).sql() == "(a OR c) AND UPPER(d) = (b + 1)"
    assert substitute(parse_one("a"), put).sql() == "(b + 1)"


def test_conjuncts_are_taken_apart_in_order() -> None:
    parts = conjuncts(parse_one("a > 1 AND (b OR c) AND (d AND e)"))
    assert [p.sql() for p in parts] == ["a > 1", "b OR c", "d", "e"]


def test_distinct_names_do_not_differ_in_case_alone() -> None:
    distinct_names(["a", "b"], "SELECT")
    with pytest.raises(QueryError) as caught:
        distinct_names(["a", "b", "A"], "SELECT")
    assert str(caught.value) == (
        "SELECT: every column needs a name of its own; got A twice. "
        "Give one of them another name with AS."
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("COUNT(*)", "count(1)"),
        ("AVG(fare)", "avg(fare)"),
        ("COUNT(DISTINCT x)", "count(DISTINCT x)"),
        ("SUM(a) / COUNT(*)", "(sum(a) / count(1))"),
        ("fare", "fare"),
        ("UPPER(Route)", "upper(Route)"),
    ],
)
def test_names_that_spark_gives(text: str, name: str) -> None:
    assert spark_name(parse_one(text, read="spark")) == name
