"""The page for people who know Spark: what of it runs without Spark; tests/spark has the rest."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.block import blocks
from tests.docs.test_sql import bound
from tidegate.query.output import single

PAGE = "docs/spark.md"


def program(title: str) -> str:
    """The Python block whose first line is this comment."""
    (found,) = [b for b in blocks(PAGE, "python") if b.startswith(f"# {title}\n")]
    return found


def test_the_test_it_shows_passes() -> None:
    names: dict[str, Callable[[], None]] = {}
    exec(compile(program("test"), PAGE, "exec"), names)
    names["test_rides_are_counted"]()


def test_its_sql_binds() -> None:
    (script,) = blocks(PAGE, "sql")
    assert single(bound(script)).names == ("window_start", "window_end", "route", "fare", "n")
