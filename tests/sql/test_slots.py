"""Every slot of every syntax class that is accepted acts, or is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from tests.query.catalog import STREAMS
from tidegate.errors import UserError
from tidegate.query.binder import bind as bind_expression
from tidegate.query.types.form import FORMS
from tidegate.schema import TIME
from tidegate.sql.bind import bind
from tidegate.sql.dialect import TidegateParser, parse
from tidegate.sql.script import script_of
from tidegate.sql.slot import ACTS, MARKS, refuse_leftovers

COLUMNS = {
    "x": pa.float64(),
    "y": pa.float64(),
    "i": pa.int32(),
    "j": pa.int32(),
    "s": pa.string(),
    "t": pa.string(),
    "p": pa.bool_(),
    "q": pa.bool_(),
    "st": pa.struct([("c", pa.int32()), ("tip", pa.int64())]),
    "at": TIME,
    "to": TIME,
    "d": pa.date32(),
    "e": pa.date32(),
}
LIKE = {"x": "y", "i": "j", "s": "t", "p": "q", "at": "to", "d": "e"}
"""Another column of the same type, for each that an argument is tried with."""

FIVE = "[RANGE 5 MINUTES]"
SAMPLES = (
    "SELECT route, COUNT(DISTINCT fare) AS n, SUM(fare) FILTER (WHERE tip > 1) AS s, AVG(fare) AS a"
    f" FROM rides AS r {FIVE} WHERE tip > 1 GROUP BY route HAVING COUNT(*) > 1 ORDER BY n DESC"
    " LIMIT 3 ROWS ONLY",
    f"SELECT DISTINCT route FROM rides {FIVE} ORDER BY route NULLS LAST FETCH FIRST 3 ROWS ONLY",
    f"SELECT route, COUNT(*) AS n FROM rides {FIVE} GROUP BY ALL",
    f"SELECT COUNT(*) AS n FROM rides {FIVE} GROUP BY route, tip WITH ROLLUP",
    f"SELECT COUNT(*) AS n FROM rides {FIVE} GROUP BY route, tip WITH CUBE",
    f"SELECT COUNT(*) AS n FROM rides {FIVE} GROUP BY route GROUPING SETS ((route), ())",
    f"SELECT GROUPING(route) AS g, GROUPING_ID(tip, route) AS i, COUNT(*) AS n FROM rides {FIVE}"
    " GROUP BY ROLLUP (route), CUBE (tip), GROUPING SETS ((fare, paid), ())",
    f"SELECT route, a.tip FROM rides AS a {FIVE} JOIN calls AS b {FIVE} USING (route)",
    f"SELECT a.tip FROM rides AS a {FIVE} CROSS JOIN calls AS b {FIVE} ON a.fare > b.fare",
    f"SELECT route, a.tip FROM rides AS a {FIVE} NATURAL JOIN calls AS b [ROWS 3]",
    "SELECT a.tip FROM rides AS a ASOF LEFT JOIN calls AS b MATCH_CONDITION (a.ts >= b.ts)",
    f"SELECT COUNT(*) AS n FROM (rides AS a {FIVE} CROSS JOIN calls AS b {FIVE}) {FIVE}",
    "SELECT DISTINCT ON (route) fare FROM rides KEEP FIRST WITHIN 1 HOUR",
    f"SELECT route, tip, COUNT(*) AS n FROM rides {FIVE} GROUP BY route, tip LIMIT 3 BY tip",
    "SELECT SUM(fare) OVER (PARTITION BY route ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT "
    "ROW) AS s, LAG(fare, 1, tip) OVER (ORDER BY ts) AS p, LEAD(fare, 2, tip) OVER (ORDER BY ts) "
    "AS n FROM rides",
    "SELECT NTH_VALUE(fare, 2) IGNORE NULLS OVER (ORDER BY ts) AS f FROM rides",
    "SELECT RANK() OVER w AS r, SUM(fare) OVER (w ROWS 2 PRECEDING) AS s FROM rides "
    "WINDOW v AS (PARTITION BY route), w AS (v ORDER BY ts)",
    f"SELECT route, COUNT(*) AS n FROM rides {FIVE} GROUP BY route "
    "QUALIFY DENSE_RANK() OVER (PARTITION BY route ORDER BY n) < 3",
    f"SELECT route, a.tip FROM rides AS a {FIVE} LEFT JOIN calls AS b {FIVE} USING (route)",
    "WITH w (a) AS (SELECT route FROM rides) SELECT * FROM w",
    "SELECT * EXCEPT (fare) FROM rides",
    "SELECT r.* REPLACE (fare + 1 AS fare) FROM rides AS r",
    "SELECT * RENAME (fare AS price) FROM rides",
    "SELECT route FROM rides UNION ALL SELECT route FROM calls LIMIT 5",
    "WITH w AS (SELECT 1 AS a FROM rides) SELECT a FROM w UNION ALL SELECT tip FROM rides",
    f"(SELECT window_end AS e, COUNT(*) AS n FROM rides {FIVE}) ORDER BY n LIMIT 2",
    "SELECT u.route FROM (SELECT route FROM rides) AS u",
    f"SELECT COUNT(*) AS n FROM rides {FIVE} UNION ALL SELECT tip FROM rides ORDER BY n",
    f"SELECT EXPLODE(l) AS x FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE})",
    f"SELECT EXPLODE_OUTER(l) AS x FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE})",
    f"SELECT POSEXPLODE(l) AS (p, x) FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE})",
    f"SELECT POSEXPLODE_OUTER(l) AS (p, x) FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE})",
    f"SELECT x, n FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE}) CROSS JOIN UNNEST(l) WITH"
    " ORDINALITY AS t(x, n)",
    f"SELECT x FROM (SELECT ARRAY_AGG(tip) AS l FROM rides {FIVE}) LATERAL VIEW OUTER EXPLODE(l) t"
    " AS x",
    "SELECT route FROM spark.`default`.rides",
    "SELECT spark.`default`.rides.route FROM rides",
    "CREATE STREAM r (`a` STRING, b STRUCT<c: INT>, d DECIMAL(10, 2)) FROM 'u' TIME a DISORDER 2"
    " SECONDS IDLE '3 seconds' OPTIONS (header false); SELECT route FROM r",
    "CREATE STREAM r FROM 'u' THEN 'kafka://h:1/t' UNTIL '2024-01-01' TIME a; SELECT route FROM r",
    "CREATE STREAM r AS SELECT route FROM rides; SELECT route FROM r",
    "CREATE TABLE z (`a` STRING, b TIMESTAMP) FROM 'u', 'v' VALID FROM b OPTIONS (header false);"
    " SELECT route FROM rides",
    "CREATE TABLE z FROM 'u' REFRESH EVERY '3 minutes'; SELECT route FROM rides",
    "INSERT INTO o SELECT route FROM rides",
    "SELECT COUNT(*) AS n FROM rides [RANGE 5 MINUTES SLIDE 1 MINUTE] WITH ERROR 10 PERCENT"
    " CONFIDENCE 90 PERCENT BUDGET 100 ROWS BY MEAN",
    f"SELECT route, AVG(fare) AS a FROM rides {FIVE} GROUP BY route WITH BALANCE ERROR 10 PERCENT"
    " CONFIDENCE 90 PERCENT",
    f"SELECT AVG(fare) AS a FROM rides {FIVE} WITH SHED 90 PERCENT BY UNIFORM",
    f"SELECT COUNT(*) AS n FROM rides {FIVE} WITH LATENCY 2 SECONDS",
    f"SELECT route, COUNT(*) AS n FROM rides {FIVE} GROUP BY route WITH PARTITIONER cam",
    f"WITH w AS (SELECT fare FROM rides) SELECT AVG(fare) AS n FROM w {FIVE} WITH ERROR 10 PERCENT",
    *(
        f"SELECT {call} AS c FROM rides {FIVE}"
        for call in (
            *("COUNT(tip, fare)", "MAX(fare, tip)", "MIN(fare, tip)", "MEDIAN(tip)", "AVG(tip)"),
            *("MAX(fare)", "MIN(fare)", "ARG_MAX(tip, fare)", "ARG_MIN(tip, fare)"),
            *("QUANTILE(tip, 0.3)", "APPROX_COUNT_DISTINCT(tip, 0.1)", "COUNT_IF(paid)"),
            *("FIRST(tip)", "LAST(tip)", "FIRST_VALUE(tip)", "LAST_VALUE(tip)", "STDDEV(tip)"),
            *("VARIANCE(tip)", "BOOL_AND(paid)", "BOOL_OR(paid)", "FIRST(tip) RESPECT NULLS"),
            *("FIRST(tip) IGNORE NULLS", "ARRAY_AGG(tip ORDER BY fare DESC)"),
            *("PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY fare DESC)", "COLLECT_SET(tip)"),
        )
    ),
    "SELECT INTERVAL '1.5' SECOND AS a, INTERVAL '3' DAY AS b FROM rides",
    "SELECT ts + INTERVAL '1 02' DAY TO HOUR AS a FROM rides",
    "SELECT fare IN (SELECT fare FROM calls) AS a FROM rides",
    "SELECT (fare, tip) AS a, f(fare) AS b, 'x' AS c, TRUE AS e FROM rides",
)
SCALARS = (
    *(
        "x + y",
        "x - y",
        "x * y",
        "x / y",
        "x % y",
        "i DIV j",
        "i & j",
        "i | j",
        "i ^ j",
        "~i",
        "-x",
    ),
    *("x = y", "x <> y", "x < y", "x <= y", "x > y", "x >= y", "x <=> y", "EQUAL_NULL(x, y)"),
    *(
        "x IS DISTINCT FROM y",
        "x IS NULL",
        "p IS TRUE",
        "(st).c",
        "INT(x)",
        "p AND q",
        "p OR q",
        "NOT p",
        "(x)",
        "s || t",
    ),
    *(
        "x BETWEEN y AND 3",
        "x BETWEEN SYMMETRIC 3 AND y",
        "x IN (1, y)",
        "s LIKE 'a%'",
        "s ILIKE t",
    ),
    *("s NOT LIKE 'a%'", "s NOT ILIKE 'a%'", "s LIKE 'a!%' ESCAPE '!'", "EXTRACT(DAY FROM at)"),
    *("CASE x WHEN y THEN 1 ELSE 2 END", "IF(p, x, y)", "CAST(x AS INT)", "TRY_CAST(s AS INT)"),
    *("DATE_TRUNC('day', at)", "TRUNC(d, 'month')", "TRIM(LEADING 'x' FROM s)", "DATE_ADD(d, i)"),
    *("TO_DATE(s)", "TO_DATE(s, 'yyyy')", "DATEDIFF(d, e)", "DATEDIFF(HOUR, at, to)", "CEIL(x, 1)"),
    *("FLOOR(x, 1)", "DATEADD(MONTH, 1, d)", "LOG(x, y)"),
)
"""Expressions over `COLUMNS` with every slot that kernels or Spark read."""


def outcome(statements: list[exp.Expression]) -> object:
    """What a script means: its streams and plans, or what is said of it."""
    try:
        for statement in statements:
            refuse_leftovers(statement, "", {})
        script = script_of(statements)
        made = {c.name: STREAMS["rides"] for c in script.creates}
        return script.creates, script.tables, bind(script, {**STREAMS, **made})
    except UserError as error:
        return str(error)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # no parser makes this tree
        return repr(error)


def meaning(expression: exp.Expr) -> object:
    """What kernels make of an expression, or what Spark gets."""
    try:
        refuse_leftovers(expression, "", {})
        return bind_expression(expression, COLUMNS, "here")
    except UserError as error:
        return f"{error.got} {error.requirement}"


def others(value: Any, required: bool) -> Iterator[Any]:
    """Other values for a slot, of the same kind; none where it may be empty."""
    if isinstance(value, list):
        yield from ([other, *value[1:]] for other in others(value[0], True))
        yield [*value, value[0].copy()]
    elif isinstance(value, exp.Expr):
        for at, leaf in enumerate(value.walk()):
            yield from (_changed(value, at, "this", text) for text in _texts(leaf))
        unread = [s for s in value.arg_types if s not in ACTS.get(type(value), value.arg_types)]
        yield from (_changed(value, 0, slot, "x") for slot in unread)
        if not any(value.args.values()):  # a call without arguments
            yield exp.column("x")
    elif isinstance(value, exp.DataType.Type):
        yield exp.DataType.Type.BINARY
    else:
        yield from (not value,) if isinstance(value, bool) else _words(value)
    if not required:
        yield [] if isinstance(value, list) else None


def _texts(leaf: exp.Expr) -> Iterator[Any]:
    """Other contents of a leaf of a tree."""
    if isinstance(leaf, exp.DataType):
        yield exp.DataType.Type.BINARY
    elif isinstance(leaf, exp.Boolean):
        yield not leaf.this
    elif isinstance(leaf, exp.Literal) and not leaf.is_string:
        yield f"1{leaf.this}"
    elif isinstance(leaf, exp.Identifier | exp.Literal | exp.Var):
        yield from _words(leaf.this)


def _words(text: str) -> Iterator[str]:
    known = {**LIKE, "DAY": "MONTH", "HOUR": "DAY", "MEAN": "MAX", "RANGE": "ROWS"}
    yield from (known[text],) if text in known else ()
    yield from ("INNER", "tip", f"{text}b")


def _changed(value: exp.Expr, at: int, slot: str, text: Any) -> exp.Expr:
    copy = exp.Paren(this=value.copy())
    list(copy.this.walk())[at].set(slot, text)
    return copy.this.pop()


def acts(trees: list[exp.Expression], at: int, slot: str, told: Any) -> bool:
    """Whether another value of a slot, of the node at this place, is told as something else."""
    node = _nodes(trees)[at]
    before = told([t.copy() for t in trees])
    for other in others(node.args[slot], node.arg_types[slot]):
        changed = [t.copy() for t in trees]
        _nodes(changed)[at].set(slot, other)
        if told(changed) != before:
            return True
    return False


def _nodes(trees: list[exp.Expression]) -> list[exp.Expr]:
    return [node for tree in trees for node in tree.walk()]


def written() -> dict[tuple[type[exp.Expr], str], list[tuple[list[exp.Expression], int, Any]]]:
    """The samples in which each slot is written, and where."""
    found: dict[Any, list[Any]] = {}
    scalars = [parse(f"SELECT {text} FROM r")[0].expressions[0].pop() for text in SCALARS]
    structures = [(parse(sample), outcome) for sample in SAMPLES]
    expressions = [([tree], lambda t: meaning(t[0])) for tree in (*scalars, *_calls())]
    for trees, told in (*structures, *expressions):
        for at, node in enumerate(_nodes(trees)):
            for slot, value in node.args.items():
                if value is not None and value != []:
                    found.setdefault((type(node), slot), []).append((trees, at, told))
    return found


def _calls() -> Iterator[exp.Expr]:
    """A call of each function that has a form of its own, over columns of types that it takes."""
    for kind, (_, slots) in FORMS.items():
        calls = [
            kind(**{s: [value] if s == "expressions" else value for s, value in zip(slots, values)})
            for names in product((*LIKE, "2"), repeat=len(slots))
            for values in [[exp.column(n) if n in LIKE else exp.Literal.number(n) for n in names]]
        ]
        yield next((call for call in calls if not isinstance(meaning(call), str)), calls[0])


WRITTEN = written()
READ = [(kind, slot) for kind, slots in ACTS.items() for slot in slots]
UNREAD = [
    (kind, slot) for kind, slots in ACTS.items() for slot in kind.arg_types if slot not in slots
]


def test_all_slots_are_walked() -> None:
    assert len(ACTS) > 150
    assert len(READ) + len(UNREAD) == sum(len(kind.arg_types) for kind in ACTS)
    assert len(READ) > 300
    assert len(UNREAD) > 160
    assert all(slot in kind.arg_types for kind, slot in READ)


@pytest.mark.parametrize(("kind", "slot"), READ, ids=str)
def test_a_slot_that_is_read_acts(kind: type[exp.Expr], slot: str) -> None:
    samples = WRITTEN.get((kind, slot), [])
    assert samples, "no sample writes it"
    assert any(acts(trees, at, slot, told) for trees, at, told in samples)


@pytest.mark.parametrize(("kind", "slot"), UNREAD, ids=str)
def test_a_slot_that_is_not_read_is_refused(kind: type[exp.Expr], slot: str) -> None:
    node = next(
        _nodes(trees)[at] for k, s in WRITTEN if k is kind for trees, at, _ in WRITTEN[k, s]
    )
    for value in (exp.column("x"), [exp.column("x")], True):
        copy = node.copy()
        copy.set(slot, value)
        if MARKS.get((kind, slot)) is value:
            continue
        with pytest.raises(UserError) as error:
            refuse_leftovers(copy, "", {})
        assert slot.strip("_").upper() == slot.upper() or slot not in str(error.value)


@pytest.mark.parametrize("name", sorted(TidegateParser.FUNCTION_PARSERS))
def test_a_function_with_a_parser_of_its_own_keeps_every_argument_or_is_refused(name: str) -> None:
    calls = [f"{name}({', '.join(f'c{n}' for n in range(count))})" for count in range(1, 7)]
    for call in [*calls, f"{name}(c0, c1 IN c2)"]:
        try:
            (tree,) = parse(f"SELECT {call} AS found FROM rides")
        except UserError:
            continue
        written = tree.sql("spark").lower()
        assert [c for c in re.findall(r"c\d", call) if c not in written] == [], call
