"""The pages about SQL: their queries bind, their functions are those there are."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import sqlglot

from tests.docs.block import ROOT
from tidegate.errors import UnavailableError
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.plan.lowering.lower import lower
from tidegate.query.binder import bind
from tidegate.query.definition import StreamDef
from tidegate.query.output import Output
from tidegate.query.types.form import ALIASES, EXTRACTS
from tidegate.query.types.function import FUNCTIONS
from tidegate.schema import TIME
from tidegate.source.registry import open_uri
from tidegate.sql.bind import bind as bind_script
from tidegate.sql.dialect import Tidegate
from tidegate.sql.script import read_script

PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in [ROOT / "docs" / "sql.md", *sorted((ROOT / "docs" / "sql").glob("*.md"))]
}
PAGE = "\n".join(PAGES.values())
BLOCKS = re.findall(
    r"(?:^<!-- ([\w ]+) -->\n\n)?^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)
STREAMS = {"rides": "taxi", "yellow": "taxi", "green": "taxi", "packets": "packets"}
STREAMS |= {"trades": "trades", "quotes": "trades"}
COLUMNS = {
    **dict.fromkeys("xy", pa.float64()),
    **dict.fromkeys("ij", pa.int32()),
    "s": pa.string(),
    "t": TIME,
    "d": pa.date32(),
    "p": pa.bool_(),
}


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rules = [i for i, row in enumerate(cells) if set("".join(row)) == {"-"}]
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def queries(block: str) -> list[str]:
    """The queries of a block, each with the streams created before it; INSERT INTO are one."""
    creates: list[str] = []
    inserts: list[str] = []
    found = []
    for statement in sqlglot.parse(block, read=Tidegate):
        assert statement is not None
        text = statement.sql(dialect=Tidegate, comments=False)
        if text.startswith("CREATE"):
            creates.append(text)
        elif text.startswith("INSERT"):
            inserts.append(text)
        else:
            found.append(";\n".join([*creates, text]))
            creates = []
    return [*found, ";\n".join([*creates, *inserts])] if inserts else found


def stream(name: str) -> StreamDef:
    connector = open_uri(f"generator:{STREAMS.get(name, name)}", name, None, False)
    time = "dropoff_time" if STREAMS.get(name) == "taxi" else "ts"
    return StreamDef(name, (), time, 0, None, connector.schema)


def bound(text: str) -> tuple[Output, ...]:
    """A query bound to streams like those the page speaks of."""
    script = read_script(text)
    for create in script.creates:
        if create.name == "rides":
            assert create.time == "dropoff_time"
    return bind_script(script, {name: stream(name) for name in [*STREAMS, "calls"]})


@pytest.mark.parametrize("query", [q for mark, b in BLOCKS if not mark for q in queries(b)])
def test_its_queries_can_run(query: str) -> None:
    outputs = bound(query)
    assert len(lower(outputs).targets) == len(outputs)


@pytest.mark.parametrize("query", [q for mark, b in BLOCKS if mark for q in queries(b)])
def test_what_comes_later_says_so(query: str) -> None:
    with pytest.raises(UnavailableError, match="not available yet"):
        bound(query)


def test_there_are_both_kinds_of_blocks() -> None:
    assert len(BLOCKS) >= 8
    assert [mark for mark, _ in BLOCKS].count("not run yet") == 1


TABLES = PAGES["functions"].partition("## Numbers")[2]
CALLS = [call for row in rows(TABLES) for call in code(row[0])]


@pytest.mark.parametrize("call", CALLS)
def test_a_function_can_be_called_as_shown(call: str) -> None:
    found = bind(sqlglot.parse_one(call.replace(", ...", ""), read=Tidegate), COLUMNS, "page")
    assert isinstance(found.type, pa.DataType)


def test_the_functions_are_those_there_are() -> None:
    listed = {re.split(r"\W", call)[0] for call in CALLS}
    assert {*FUNCTIONS, *ALIASES} - {"extract(second)"} - listed == set(), "missing on the page"
    by_cast = "extract date_sub to_date to_timestamp date timestamp int float double boolean string"
    assert listed - {*FUNCTIONS, *ALIASES} == {*by_cast.split()}, "on the page only"


def test_the_fields_of_extract_are_those_there_are() -> None:
    (row,) = [r for r in rows(TABLES) if r[0].startswith("`extract")]
    assert code(row[2]) == list(EXTRACTS)


EXAMPLES = re.findall(r"`([^`]+)` → `([^`]+)`", PAGE)


@pytest.mark.parametrize(("expression", "value"), EXAMPLES)
def test_an_example_gives_what_it_says(expression: str, value: str) -> None:
    tree = bind(sqlglot.parse_one(expression, read=Tidegate), {}, "page")
    (found,) = evaluate(tree, pa.table({"row": [0]})).to_pylist()
    assert shown(found) == value


def shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 25
    assert shown(Decimal("3")) == "3"
