"""The newest rows as text: every type, what is cut, and what is said of the rest."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from rich.cells import cell_len

from tests.cli.scene import lines, times, windows
from tidegate.schema import TIME
from tidegate.sink.excerpt import Excerpt


def shown(table: pa.Table, width: int = 80, limit_rows: int = 20) -> list[str]:
    return lines(Excerpt.of(table).picture(width, limit_rows), width)


def test_the_newest_window_names_its_times_once() -> None:
    excerpt = Excerpt.of(windows((10, "old", 1.0), (20, "a", 9.25), (20, None, None)))
    assert excerpt.title == "newest window 2024-01-01 00:00:10 to 00:00:20"
    assert excerpt.rows == 2
    assert lines(excerpt.picture(80)) == ["route   fare", "a      9.250", "NULL    NULL"]


def test_a_window_over_midnight_has_both_days() -> None:
    excerpt = Excerpt.of(windows((5, "a", 1.0)))
    assert excerpt.title == "newest window 2023-12-31 23:59:55 to 2024-01-01 00:00:05"


def test_rows_beyond_the_limit_are_counted() -> None:
    table = windows(*((10, f"r{i:02d}", float(i)) for i in range(25)))
    assert shown(table)[-1] == "+5 more rows"
    assert shown(table, limit_rows=2) == [
        "route  fare",
        "r00     0.0",
        "r01     1.0",
        "+23 more rows",
    ]


def test_without_windows_the_last_rows_are_shown() -> None:
    table = pa.table({"ts": times(*range(30)), "k": [f"r{i:02d}" for i in range(30)]})
    excerpt = Excerpt.of(table)
    assert excerpt.title == "newest rows"
    assert lines(excerpt.picture(80, 2)) == [
        "ts                   k",
        "2024-01-01 00:00:28  r28",
        "2024-01-01 00:00:29  r29",
        "+28 more rows",
    ]


def test_columns_that_do_not_fit_are_counted() -> None:
    table = pa.table({f"column{i}": [i] for i in range(30)})
    assert shown(table, 40) == [
        "column0  column1  column2  column3",
        "      0        1        2        3",
        "+26 more columns",
    ]


def test_a_number_is_left_out_rather_than_cut() -> None:
    table = pa.table({"name": ["abcdefgh"], "big": pa.array([2**62])})
    assert shown(table, 20) == ["name", "abcdefgh", "+1 more column"]


@pytest.mark.parametrize("width", [20, 21, 33, 60])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    table = pa.table({"t": ["日本語" * 30, "x" * 300, "e\u0301" * 50], "u": ["ü" * 90] * 3})
    said = shown(table, width)
    assert all(cell_len(line) <= width for line in said)
    assert said[1].startswith("日本語")
    assert "…" in said[1]
    assert len(said) in (4, 5)


def test_text_cannot_move_the_cursor_or_style_itself() -> None:
    said = shown(pa.table({"a\nb": ["\x1b[2Jx", "two\nlines", "[red]y[/]"]}))
    assert said == ["a\\nb", "\\x1b[2Jx", "two\\nlines", "[red]y[/]"]


def test_floats_have_the_decimals_of_their_column_and_those_that_would_be_lost() -> None:
    def cells(*values: float | None) -> list[str]:
        return [line.strip() for line in shown(pa.table({"x": pa.array(values, pa.float64())}))[1:]]

    assert cells(9.2, 12.3456) == ["9.20", "12.35"]
    assert cells(1234567.25, 0.5) == ["1,234,567.2", "0.5"]
    assert cells(1.0, 200.0, None) == ["1.0", "200.0", "NULL"]
    assert cells(float("nan"), float("-inf"), 0.25) == ["nan", "-inf", "0.250"]
    assert cells(1e-9, 1.0, 2.5) == ["1e-09", "1.000", "2.500"]
    assert cells(1e15, 7.0) == ["1e+15", "7.0"]
    assert cells(12345.625, 0.01234, -0.96, 0.0) == ["12,345.6", "0.0123", "-0.960", "0.0"]


def test_fractions_of_seconds_are_shown_where_there_are_any() -> None:
    assert shown(pa.table({"ts": times(1, 2.25)}))[1:] == [
        "2024-01-01 00:00:01.00",
        "2024-01-01 00:00:02.25",
    ]


def test_every_type_has_a_form() -> None:
    table = pa.table(
        {
            "far": pa.array([2**62, -(2**62)], pa.int64()).cast(TIME),
            "day": [date(2024, 1, 31), None],
            "yes": [True, None],
            "sum": pa.array([Decimal("1.20"), None], pa.decimal128(10, 2)),
            "raw": [b"\xff\x00", None],
            "list": [[1, 2], None],
            "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "none": pa.nulls(2),
        }
    )
    first, second = shown(table, 200)[1:]
    for text in ("+148108-", "2024-01-31", "true", "1.20", "/wA=", "[1, 2]", '{"k": 1}'):
        assert text in first
    assert second.count("NULL") == 7
