"""Functions of strings by code points, as Spark defines them, over Arrow string arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.expression.pattern import ONE, like_parts
from tidegate.operate.kernels.expression.vector import by_distinct


def _case(ascii_: Callable[[Any], Any], full: Callable[[str], str]) -> Callable[..., Any]:
    """Case mapping: ASCII at once, other text by the full Unicode rules per distinct value."""

    def kernel(type_: pa.DataType, value: Any) -> Any:
        if pc.all(pc.string_is_ascii(value)).as_py() is not False:
            return ascii_(value)
        return by_distinct(value, lambda text: None if text is None else full(text), type_)

    return kernel


def length(type_: pa.DataType, value: Any) -> Any:
    count = pc.utf8_length(value) if pa.types.is_string(value.type) else pc.binary_length(value)
    return count.cast(type_)


def _with_constants(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of a column and Python constants; NULL where a constant is NULL."""

    def kernel(type_: pa.DataType, value: Any, *constants: Any) -> Any:
        if not all(constant.is_valid for constant in constants):
            return pa.nulls(len(value), type_)
        return function(type_, value, *(constant.as_py() for constant in constants))

    return kernel


def _trim(function: Callable[..., Any]) -> Callable[..., Any]:
    return _with_constants(
        lambda _, value, wanted: function(value, characters=wanted) if wanted else value
    )


def _find(function: Callable[..., Any]) -> Callable[..., Any]:
    return _with_constants(lambda _, value, pattern: function(value, pattern=pattern))


def substring(type_: pa.DataType, value: Any, first: int, rows: int) -> Any:
    """Positions start at 1 (0 means 1), negative ones count from the end."""
    first = first - 1 if first > 0 else first
    if rows <= 0:
        return pc.if_else(value.is_valid(), pa.scalar("", type_), pa.scalar(None, type_))
    stop = first + rows
    if first < 0 <= stop:
        return pc.utf8_slice_codeunits(value, start=first)
    return pc.utf8_slice_codeunits(value, start=first, stop=min(stop, 2**31 - 1))


def concat(_: pa.DataType, *values: Any) -> Any:
    """Strings joined; NULL when any is NULL."""
    return pc.binary_join_element_wise(*values, "", null_handling="emit_null")


def replace(_: pa.DataType, value: Any, search: str, replacement: str) -> Any:
    return pc.replace_substring(value, search, replacement) if search else value


def split(_: pa.DataType, value: Any, separator: str) -> Any:
    return pc.split_pattern(value, separator)


def like(_: pa.DataType, value: Any, pattern: str, escape: str) -> Any:
    """LIKE; patterns with % at the ends only need no regular expression."""
    parts = like_parts(pattern, escape)
    literal = "".join(part for part in parts if part is not None and part != ONE)
    wild = [i for i, part in enumerate(parts) if part is None]
    if ONE not in parts:
        if not wild:
            return pc.equal(value, pa.scalar(literal, pa.string()))
        inner = [i for i in wild if 0 < i < len(parts) - 1]
        if not inner and literal:
            open_start, open_end = parts[0] is None, parts[-1] is None
            closed = pc.ends_with if open_start else pc.starts_with
            find = pc.match_substring if open_start and open_end else closed
            return find(value, pattern=literal)
    text = "".join(".*" if p is None else "." if p == ONE else re.escape(p) for p in parts)
    return pc.match_substring_regex(value, pattern=f"(?s)\\A(?:{text})\\z")


OPS: dict[str, Callable[..., Any]] = {
    "upper": _case(pc.ascii_upper, str.upper),
    "lower": _case(pc.ascii_lower, str.lower),
    "length": length,
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "substring": _with_constants(substring),
    "concat": concat,
    "replace": _with_constants(replace),
    "split": _with_constants(split),
    "starts_with": _find(pc.starts_with),
    "ends_with": _find(pc.ends_with),
    "contains": _find(pc.match_substring),
    "like": _with_constants(like),
}
