"""The ways in which conditions can be true: what each spelling gives, and that none is missed."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.test_conjunct import TYPES
from tidegate.expression.tree import Call, Column, Expr, Literal, describe
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.join.disjunct import MOST, certain, ways_of
from tidegate.query.binder import bind_predicate

BOOL = pa.bool_()


def bound(text: str) -> Expr:
    return bind_predicate(sqlglot.parse_one(text, dialect="spark"), TYPES, "ON")


WAYS = {
    "l_i = r_i OR l_i = r_i2": ["l_i = r_i", "l_i = r_i2"],
    "l_i IN (r_i, r_i2, r_i)": ["l_i = r_i", "l_i = r_i2"],
    "l_i = r_i OR (l_i = r_i AND l_o)": ["l_i = r_i"],
    "(l_i = r_i AND l_o) OR l_i = r_i": ["l_i = r_i"],
    "l_i = r_i OR FALSE OR NULL": ["l_i = r_i"],
    "l_i = r_i OR (l_s = r_s OR (l_o AND l_i < r_i))": [
        "l_i = r_i",
        "l_s = r_s",
        "l_o & l_i < r_i",
    ],
    "NOT (l_i <> r_i AND l_s <> r_s)": ["l_i = r_i", "l_s = r_s"],
    "NOT (NOT (l_i = r_i))": ["l_i = r_i"],
    "(l_i <> r_i) IS FALSE": ["l_i = r_i"],
    "(l_i = r_i) IS NOT FALSE": ["NOT(IS_FALSE(l_i = r_i))"],
    "CASE WHEN l_o THEN l_i = r_i WHEN r_o THEN FALSE ELSE l_i = r_i2 END": [
        "l_o & l_i = r_i",
        "l_i = r_i2",
    ],
    "NOT CASE WHEN l_o THEN l_i <> r_i ELSE TRUE END": ["l_o & l_i = r_i"],
    "COALESCE(l_i = r_i, l_s = r_s)": ["l_i = r_i", "l_s = r_s"],
    "l_i = r_i OR (r_i IS NULL AND l_i IS NULL)": ["l_i <=> r_i"],
    "(l_o AND l_i = r_i) OR (l_o AND r_i IS NULL AND l_i IS NULL)": ["l_o & l_i <=> r_i"],
    "l_i = r_i OR l_i IS NULL": ["l_i = r_i", "IS_NULL(l_i)"],
    "FALSE": [],
    "TRUE OR l_o": [""],
}


@pytest.mark.parametrize("text", WAYS)
def test_ways(text: str) -> None:
    assert [" & ".join(map(describe, way)) for way in ways_of(bound(text))] == WAYS[text]


def test_what_is_in_all_ways_is_certain_unless_it_may_need_its_guard() -> None:
    common = bound("(l_i = r_i AND l_o) OR (r_o AND l_i = r_i)")
    assert [describe(c) for c in certain(common)] == ["l_i = r_i"]
    guarded = bound("CASE WHEN l_i < 5 THEN l_i + 1 = r_i ELSE FALSE END")
    assert [describe(c) for c in certain(guarded)] == ["l_i < 5"]


def test_the_number_of_ways_is_bounded() -> None:
    many = " OR ".join(f"l_i = r_i + {n}" for n in range(2 * MOST))
    assert ways_of(bound(many)) == [(bound(many),)]
    either = " AND ".join(f"(l_i = r_i + {n} OR l_s = r_s)" for n in range(20))
    assert len(ways_of(bound(either))) <= MOST


def test_a_chain_of_thousands_is_no_deep_recursion() -> None:
    chain: Expr = Column("p", BOOL)
    for _ in range(5_000):
        chain = Call("or", (chain, Column("q", BOOL)), BOOL)
    assert ways_of(chain) == [(chain,)]


NEGATIONS = st.sampled_from(["not", "is_true", "is_false"])
CONDITIONS = st.recursive(
    st.sampled_from(
        [*(Column(name, BOOL) for name in "pqr"), *(Literal(v, BOOL) for v in (True, False, None))]
    ),
    lambda inner: st.one_of(
        st.builds(lambda op, *a: Call(op, a, BOOL), st.sampled_from(["and", "or"]), inner, inner),
        st.builds(lambda *a: Call("case", a, BOOL), inner, inner, inner, inner, inner),
        st.builds(lambda *a: Call("coalesce", a, BOOL), inner, inner),
        st.builds(lambda op, a: Call(op, (a,), BOOL), NEGATIONS, inner),
        st.builds(lambda *a: Call("eq", a, BOOL), inner, inner),
        st.builds(lambda *a: Call("null_safe_eq", a, BOOL), inner, inner),
    ),
    max_leaves=10,
)
ALL = list(product((True, False, None), repeat=3))
VALUES = pa.table({name: pa.array(column, BOOL) for name, column in zip("pqr", zip(*ALL))})


@given(CONDITIONS)
def test_where_the_whole_is_true_all_of_some_way_is(condition: Expr) -> None:
    found = [False] * len(ALL)
    for way in ways_of(condition):
        parts = [evaluate(part, VALUES).to_pylist() for part in way]
        found = [f or all(p[i] for p in parts) for i, f in enumerate(found)]
    for i, truth in enumerate(evaluate(condition, VALUES).to_pylist()):
        assert found[i] or not truth
    for part in certain(condition):
        said = evaluate(part, VALUES).to_pylist()
        assert all(said[i] for i, t in enumerate(evaluate(condition, VALUES).to_pylist()) if t)
