"""Asks the code what the functions of SQL take and give, for the pages about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from tools.markdown_text import code, table

import tidegate as tg
from tidegate.operate.aggregate import definition
from tidegate.operate.aggregate.definition import (
    AggregateFunction,
    OrderedFunction,
    WithinFunction,
)
from tidegate.operate.aggregate.registry import TABLE
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.query.binder import bind
from tidegate.schema import TIME, type_name
from tidegate.sql.dialect import Tidegate

FUNCTIONS = Path(__file__).resolve().parent.parent / "docs" / "sql" / "functions.md"

KINDS = {
    definition.ANYTHING: "any",
    definition.NUMBER: "number",
    definition.ORDERED: "ordered",
    definition.TIME_OR_NUMBER: "number, date or time",
    definition.TEXT: "text",
    definition.BOOLEAN: "condition",
}
"""The rules of arguments in a word; an ordered value may be compared."""
COLUMNS = {definition.TEXT: "s", definition.BOOLEAN: "p"}
"""What examples give for an argument; numbers are x and y."""
CONSTANTS = {"fraction": "0.5", "separator": "','"}
"""What examples give for a constant that has no default."""

ROWS = pa.table(
    {
        "ts": [datetime(2024, 1, 1, 0, minute, tzinfo=UTC) for minute in range(5)],
        "x": pa.array([4, 1, 2, 2, None], pa.int64()),
        "y": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "s": ["b", "a", "b", "c", None],
        "p": [True, True, False, True, None],
        "double": pa.array([1.0] * 5),
        "decimal": pa.array([Decimal("1.00")] * 5, pa.decimal128(10, 2)),
        "timestamp": [datetime(2024, 1, 1, tzinfo=UTC)] * 5,
    }
)
"""What the examples are over, and a column of each type that a result may depend on."""


def arguments(function: AggregateFunction) -> list[str]:
    """A column for each argument that must be there."""
    least = len(function.arguments) if function.least is None else max(function.least, 1)
    numbers = iter("xy")
    return [COLUMNS.get(rule) or next(numbers) for rule in function.arguments[:least]]


def calls(function: AggregateFunction) -> Iterator[str]:
    """The ways to write a call in SQL."""
    given = arguments(function)
    constants = [CONSTANTS[p.name] for p in function.parameters if p.name in CONSTANTS]
    inside = ", ".join([*given, *constants])
    for name in function.sql:
        if isinstance(function, WithinFunction):
            yield f"{name}({', '.join(constants)}) WITHIN GROUP (ORDER BY {given[0]})"
        else:
            yield f"{name}({inside})"
    if isinstance(function, OrderedFunction) and function.sql:
        yield f"{function.sql[0]}({inside} ORDER BY y)"
    if function.star and function.sql:
        yield f"{function.sql[0]}(*)"
    for other in TABLE:
        if other.distinct == function.name != other.name and other.sql:
            yield f"{other.sql[0]}(DISTINCT {inside})"


def asked(expressions: list[str]) -> pa.Table:
    """What aggregates give over all rows; the columns are v0, v1 and so on."""
    source = tg.MemorySource(ROWS, time="ts")
    source.end()
    session = tg.Session(master="none")
    named = ", ".join(f"{text} AS v{n}" for n, text in enumerate(expressions))
    rows = session.stream(source, name="rows", time="ts")
    return session.sql(f"SELECT {named} FROM rows [RANGE 1 HOUR]", rows=rows).to_arrow()


def result_types(function: AggregateFunction, call: str) -> str:
    """The type of the result, where it depends on that of the argument by that."""
    rule = function.arguments[0]
    typed = {name: ROWS.schema.field(name).type for name in ("x", "double", "decimal", "timestamp")}
    taken = {n: t for n, t in typed.items() if rule is not definition.TEXT and rule.accepts(t)}
    if not taken:
        return code(type_name(asked([call])["v0"].type))
    found = asked([re.sub(r"\bx\b", name, call) for name in taken])
    return told({given: found[f"v{n}"].type for n, given in enumerate(taken.values())}, "x")


def told(results: Mapping[pa.DataType, pa.DataType], letter: str) -> str:
    """Types of results by those of an argument: what most have, and then each that differs."""
    if all(pa.types.is_list(result) for result in results.values()) and len(results) > 1:
        return f"`array` of {letter}"
    named = {type_name(given): type_name(result) for given, result in results.items()}
    first, *others = dict.fromkeys(named.values())
    same = [given for given, result in named.items() if given == result]
    if not others or len(same) < 2:
        usual, differing = code(first), [g for g, result in named.items() if result != first]
    else:
        usual, differing = f"type of {letter}", [g for g in named if g not in same]
    return "; ".join([usual, *(f"{code(named[g])} of {code(g)}" for g in differing)])


def shown(value: Any) -> str:
    """A value as the pages have it."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, float):
        return f"{value:.6g}" if value % 1 else str(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def aggregate_page() -> str:
    public = [(function, list(calls(function))) for function in TABLE]
    public = [(function, ways) for function, ways in public if ways]
    values = asked([ways[0] for _, ways in public]).to_pylist()[0]
    rows = [
        [
            ", ".join(map(code, ways)),
            code(f"tg.{function.python}") if function.python else "",
            ", ".join(KINDS[rule] for rule in function.arguments[: len(arguments(function))]),
            result_types(function, ways[0]),
            function.doc.removesuffix("."),
            code(shown(values[f"v{n}"])),
        ]
        for n, (function, ways) in enumerate(public)
    ]
    given = {name: code(shown(ROWS[name].to_pylist())) for name in "xysp"}
    return "\n\n".join(
        [
            "# All aggregates\n\n[Aggregates](../sql/aggregates.md) explains NULL, FILTER, totals "
            "and lists. An ordered value is one that can be compared. The last column is what the "
            f"first way to write it gives for five rows: x is {given['x']}, y {given['y']}, "
            f"s {given['s']} and p {given['p']}.",
            table(("SQL", "Python", "of", "result", "what it is", "example"), rows),
        ]
    )


LETTERS = {"s": pa.string(), "t": TIME, "d": pa.date32(), "p": pa.bool_()}
NUMBERS = {
    "x": (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(10, 2)),
    "i": (pa.int32(), pa.int64()),
}
"""What the letters on the page on functions stand for; y is of the type of x, j of that of i."""


def call_type(call: str) -> str:
    """The type of a call as the page on functions writes it."""
    tree = sqlglot.parse_one(call.replace(", ...", ""), read=Tidegate)
    letter = next((n for n in NUMBERS if re.search(rf"\b{n}\b", call)), "")
    kinds = NUMBERS.get(letter, (pa.null(),))
    types = {k: bind(tree, {**LETTERS, **dict.fromkeys("xyij", k)}, call).type for k in kinds}
    return told(types, letter)


def function_page() -> str:
    """The page on functions, with the results of its calls and examples as they are now."""
    lines = []
    for line in FUNCTIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            calls, _, meaning = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            types = dict.fromkeys(call_type(call) for call in re.findall(r"`([^`]+)`", calls))
            line = f"| {calls} | {', '.join(types)} | {meaning} |".replace("|  |", "| |")
        lines.append(re.sub(r"`([^`]+)` → `[^`]+`", lambda m: f"`{m[1]}` → `{value(m[1])}`", line))
    return "\n".join(lines) + "\n"


def value(expression: str) -> str:
    tree = bind(sqlglot.parse_one(expression, read=Tidegate), {}, expression)
    (found,) = evaluate(tree, pa.table({"row": [0]})).to_pylist()
    return shown(found)
