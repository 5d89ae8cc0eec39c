"""Results on the terminal: plain CSV when piped, the newest window on a terminal."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.sink.output import commit, opened, rows, started
from tidegate.batch import BatchId
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.console import ConsoleSink
from tidegate.sink.null_sink import NothingSink
from tidegate.sink.side_text import SideText
from tidegate.state.store import Store


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return started(tmp_path)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")


def test_rows_are_csv_with_one_header_when_piped(store: Store) -> None:
    out = io.StringIO()
    sink = ConsoleSink(out)
    opened(sink, store)
    commit(sink, store, 0, rows())
    commit(sink, store, 1, rows((10, "a", 1.5), (10, None, None)))
    commit(sink, store, 2, rows((20, "b", 2.0)))
    sink.close()
    assert out.getvalue().splitlines() == [
        '"window_end","k","v"',
        '1970-01-01 00:00:10.000000Z,"a",1.5',
        "1970-01-01 00:00:10.000000Z,,",
        '1970-01-01 00:00:20.000000Z,"b",2',
    ]


def test_nested_values_are_json_when_piped(store: Store) -> None:
    out = io.StringIO()
    sink = ConsoleSink(out)
    table = pa.table({"x": [[1, 2], None]})
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    assert out.getvalue() == '"x"\n"[1, 2]"\n\n'


@pytest.mark.usefixtures("wide")
def test_a_terminal_shows_the_newest_window(store: Store) -> None:
    out = Terminal()
    sink = ConsoleSink(out, title="rides")
    opened(sink, store)
    older = [(10, f"older{i}", 1.0) for i in range(3)]
    newest = [(20, f"newer{i:02d}", float(i) * 10**i) for i in range(25)]
    commit(sink, store, 0, rows(*older, *newest))
    sink.close()
    text = out.getvalue()
    assert "rides batch 0" in text
    assert "older" not in text
    assert "newer00" in text
    assert "newer19" in text
    assert "newer20" not in text
    assert "1970-01-01 00:00:20" in text


@pytest.mark.usefixtures("wide")
def test_a_terminal_shows_the_last_rows_of_a_query_without_windows(store: Store) -> None:
    out = Terminal()
    sink = ConsoleSink(out)
    table = pa.table({"k": [f"row{i:02d}" for i in range(30)]})
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    sink.close()
    assert "row09" not in out.getvalue()
    assert "row29" in out.getvalue()


@pytest.mark.usefixtures("wide")
def test_values_that_look_like_markup_are_shown_as_they_are(store: Store) -> None:
    out = Terminal()
    sink = ConsoleSink(out, title="[q]")
    table = pa.table({"[red]c": ["[/]", "[bold]x"], "[/]": [float("nan"), 1234567.0]})
    table = table.append_column("at", pa.array([None, datetime(2024, 1, 1)], pa.timestamp("us")))
    opened(sink, store, table.schema)
    commit(sink, store, 0, table)
    sink.close()
    text = out.getvalue()
    for shown in ("[q] batch 0", "[red]c", "[/]", "[bold]x", "nan", "1,234,567.0", "NULL"):
        assert shown in text


@pytest.mark.usefixtures("wide")
def test_an_empty_batch_leaves_the_picture(store: Store) -> None:
    out = Terminal()
    sink = ConsoleSink(out)
    opened(sink, store)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    before = out.getvalue()
    commit(sink, store, 1, rows())
    assert out.getvalue() == before
    sink.close()
    sink.close()


SIDES = BatchOutput(
    rows((10, "a", 1.0)),
    {"rides": rows(*[(1, f"late\u2028{i}", 0.0) for i in range(12)])},
    pa.table({"_reason": ["no time"], "_raw": ["\x1b[31mx"]}),
)


def test_late_and_rejected_tuples_are_marked_lines_apart_from_the_rows(store: Store) -> None:
    """They were counted and nothing else."""
    out, errors = io.StringIO(), io.StringIO()
    sink = ConsoleSink(out, errors=errors)
    opened(sink, store)
    commit(sink, store, 0, SIDES)
    commit(sink, store, 1, rows())
    sink.close()
    assert out.getvalue().splitlines()[1:] == ['1970-01-01 00:00:10.000000Z,"a",1']
    *late, more, rejected = errors.getvalue().split("\n")[:-1]
    assert len(late) == 10
    assert more.startswith("late tuple of rides: further ones are counted and not shown")
    assert all(line.startswith('late tuple of rides: {"window_end": ') for line in late)
    assert rejected == 'rejected tuple: {"_reason": "no time", "_raw": "\\u001b[31mx"}'


@pytest.mark.parametrize("errors", [Terminal(), io.StringIO()])
def test_neither_a_person_nor_a_log_is_flooded(errors: io.StringIO, store: Store) -> None:
    sink = ConsoleSink(io.StringIO(), errors=errors)
    opened(sink, store)
    commit(sink, store, 0, SIDES)
    before = errors.getvalue()
    assert len(before.split("\n")[:-1]) == 12
    for batch in range(1, 100):
        commit(sink, store, batch, SIDES)
    lines = errors.getvalue().removeprefix(before).split("\n")[:-1]
    assert len(lines) == 10, "what is full is not said again"
    assert lines[-1].startswith("rejected tuple: further ones are counted")


def test_a_long_tuple_is_cut(store: Store) -> None:
    errors = io.StringIO()
    sink = ConsoleSink(io.StringIO(), errors=errors)
    opened(sink, store)
    commit(sink, store, 0, BatchOutput(rows((10, "a", 1.0)), {}, pa.table({"_raw": ["x" * 10**6]})))
    assert len(errors.getvalue()) < 3_000


def test_beside_a_live_view_only_they_are_printed(store: Store) -> None:
    errors = io.StringIO()
    sink = NothingSink(SideText(errors))
    opened(sink, store)
    sink.publish(BatchId(0), [])
    commit(sink, store, 0, SIDES)
    commit(sink, store, 1, rows())
    assert len(errors.getvalue().split("\n")) == 13
    assert not NothingSink().side_outputs
