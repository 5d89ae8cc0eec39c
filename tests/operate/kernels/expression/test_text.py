from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.expression import matches
from tidegate.operate.kernels.expression.text import OPS

TEXTS = st.lists(st.none() | st.text("ab%_\\é\n😀", max_size=6), min_size=1, max_size=4)
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "%", "_", "\\%", "\\_", "\\\\", "é", "\n", ".", "*"]), max_size=5
).map("".join)


@given(TEXTS, PATTERNS)
def test_like_agrees_with_trying_every_split(texts: list[str | None], pattern: str) -> None:
    got = OPS["like"](pa.bool_(), pa.array(texts, pa.string()), pa.scalar(pattern), pa.scalar("\\"))
    assert got.to_pylist() == [None if t is None else matches(t, pattern) for t in texts]


@given(TEXTS, st.integers(-8, 8), st.integers(-2, 8))
def test_substring_counts_from_either_end(texts: list[str | None], start: int, count: int) -> None:
    def wanted(text: str | None) -> str | None:
        if text is None:
            return None
        first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
        return text[max(first, 0) : max(first + count, 0)] if count > 0 else ""

    values = pa.array(texts, pa.string())
    got = OPS["substring"](pa.string(), values, pa.scalar(start), pa.scalar(count))
    assert got.to_pylist() == [wanted(text) for text in texts]


@given(st.lists(st.none() | st.text(max_size=5), min_size=1))
def test_case_mapping_is_the_full_one(texts: list[str | None]) -> None:
    values = pa.array(texts, pa.string())
    upper = OPS["upper"](pa.string(), values).to_pylist()
    assert upper == [None if t is None else t.upper() for t in texts]
    assert OPS["length"](pa.int32(), values).to_pylist() == [
        None if t is None else len(t) for t in texts
    ]


def test_trim_takes_spaces_only_unless_told() -> None:
    values = pa.array(["  a\t ", "xax", None])
    assert OPS["trim"](pa.string(), values, pa.scalar(" ")).to_pylist() == ["a\t", "xax", None]
    assert OPS["ltrim"](pa.string(), values, pa.scalar("x ")).to_pylist() == ["a\t ", "ax", None]
    assert OPS["rtrim"](pa.string(), values, pa.scalar("")).to_pylist() == values.to_pylist()
