"""Names of syntax in messages are words of SQL, never those of sqlglot's classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlglot import exp

from tests.query.catalog import sql
from tidegate.errors import UserError
from tidegate.query.spelling import spelling
from tidegate.sql.dialect import Tidegate, TidegateParser, parse


def classes() -> Iterator[type[exp.Expr]]:
    found: list[type[exp.Expr]] = [exp.Expression]
    while found:
        kind = found.pop()
        found += kind.__subclasses__()
        yield kind


def filled(kind: type[exp.Expr]) -> exp.Expr:
    """A node with what it must have; lists where sqlglot has lists."""
    several = ("expressions", "ifs", "actions", "params", "from_", "joins")
    return kind(
        **{
            slot: [exp.column("x")] if slot in several else exp.column("x")
            for slot, required in kind.arg_types.items()
            if required
        }
    )


def test_no_class_is_called_by_its_own_name() -> None:
    """A name of several words run together is right only where SQL has a function of this name."""
    kinds = sorted(set(classes()), key=lambda k: k.__name__)
    assert len(kinds) > 900
    known = {
        *TidegateParser.FUNCTIONS,
        *TidegateParser.FUNCTION_PARSERS,
        *Tidegate.Tokenizer.KEYWORDS,
    }
    known |= {"SERDEPROPERTIES"}
    for kind in kinds:
        name = spelling(filled(kind))
        words = re.findall(r"[A-Z][a-z0-9]*", kind.__name__)
        run_together = len(words) > 1 and name == kind.__name__.upper()
        assert not run_together or name in known, kind
        assert not re.search(r"\b[A-Z]_[A-Z]_[A-Z]\b|hole", name), (kind, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ts AT TIME ZONE 'UTC'", "AT TIME ZONE"),
        ("stops[0]", "[]"),
        ("route COLLATE x", "COLLATE"),
        ("uuid()", "UUID"),
        ("f(fare)", "F"),
        ("date_format(ts, 'yyyy')", "DATE_FORMAT"),
        ("transform(stops, x -> x)", "TRANSFORM"),
        ("CASE WHEN paid THEN 1 END", "CASE WHEN THEN END"),
    ],
)
def test_operators_and_functions_are_spelt_as_written(text: str, name: str) -> None:
    assert spelling(parse(f"SELECT {text} FROM rides")[0].expressions[0]) == name


def test_what_needs_spark_is_named_as_it_is_written() -> None:
    with pytest.raises(UserError, match=r"HAVING: AT TIME ZONE needs Spark"):
        sql(
            "SELECT COUNT(*) AS n FROM rides [RANGE 1 HOUR] "
            "HAVING MAX(ts) AT TIME ZONE 'UTC' > '2024-01-01'"
        )
