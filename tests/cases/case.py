"""A case: a query, its input and its golden, between the folders and what runs them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tidegate.plan.physical import Plan
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sink.batch_output import BatchOutput
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

NULL = "NULL"
ROOT = Path(__file__).parent

Line = tuple[Any, ...]


@dataclass(frozen=True)
class Golden:
    """A golden file: its columns, and its cells as text."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    @staticmethod
    def read(path: Path) -> Golden:
        with path.open(newline="", encoding="utf-8") as text:
            header, *lines = csv.reader(text)
        return Golden(tuple(header), tuple(map(tuple, lines)))


@dataclass(frozen=True)
class Case:
    """A folder with query.sql and expected.csv, and maybe oracle.sql and goldens of the sides."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def expected(self) -> Golden:
        return Golden.read(self.folder / "expected.csv")

    @property
    def oracle(self) -> Path | None:
        path = self.folder / "oracle.sql"
        return path if path.exists() else None

    @property
    def sql(self) -> str:
        return (self.folder / "query.sql").read_text(encoding="utf-8")

    @property
    def needs_spark(self) -> bool:
        return self.sql.startswith("-- needs Spark")

    def plan(self, place: Place) -> Plan:
        """The plan, with the script's files taken from the case's folder."""
        script = read_script(self.sql)
        made = (*script.creates, *script.tables)
        uris = {c.name: [str(self.folder / uri) for uri in c.uris] for c in made}
        return plan_for(bind(script, streams_of(script, uris=uris)), place)

    def check(self, outputs: Sequence[BatchOutput]) -> None:
        """All batches of a run, in order, are the golden: the same rows in the same order."""
        rows = pa.concat_tables([o.rows for o in outputs])
        assert tuple(rows.column_names) == self.expected.columns
        assert_same(lines_of(rows, self.expected.columns), self.expected)
        late = [t for o in outputs for t in o.late.values()]
        rejected = [o.rejected for o in outputs if o.rejected is not None]
        self._check_side("late", late)
        self._check_side("rejected", rejected)

    def _check_side(self, side: str, tables: Sequence[pa.Table]) -> None:
        """A side output: the same tuples; their order follows the batches."""
        path = self.folder / f"expected_{side}.csv"
        if not path.exists():
            assert not tables, f"{side}: {[t.to_pylist() for t in tables]}"
            return
        golden = Golden.read(path)
        found = [(*key, line) for t in tables for key, line in _keyed(t, golden.columns)]
        assert_same([line for *_, line in sorted(found, key=lambda f: f[:2])], golden)


def _keyed(table: pa.Table, columns: Sequence[str]) -> list[tuple[tuple[str, int], Line]]:
    places = zip(table["_source"].to_pylist(), table["_seq"].to_pylist(), strict=True)
    return list(zip(places, lines_of(table, columns), strict=True))


def lines_of(table: pa.Table, columns: Sequence[str]) -> list[Line]:
    """Rows of a table; sources by the names of their files."""
    cells = [table[name].to_pylist() for name in columns]
    for place, name in enumerate(columns):
        if name == "_source":
            cells[place] = [Path(source).name for source in cells[place]]
    return list(zip(*cells, strict=True))


def assert_same(lines: Sequence[Line], golden: Golden) -> None:
    """Equal cell by cell; floats to twelve digits, everything else as text."""
    shown = [tuple(text(cell) for cell in line) for line in lines]
    if shown != list(golden.lines):
        assert len(shown) == len(golden.lines), (shown, golden.lines)
        for mine, line, wanted in zip(shown, lines, golden.lines, strict=True):
            same = [_same(cell, w) for cell, w in zip(line, wanted, strict=True)]
            assert all(same), f"{mine} instead of {wanted}"


def _same(cell: Any, wanted: str) -> bool:
    if isinstance(cell, float) and wanted != NULL and not math.isnan(cell):
        return math.isclose(cell, float(wanted), rel_tol=1e-12)
    return text(cell) == wanted


def text(cell: Any) -> str:
    """A cell as golden files write it."""
    if cell is None:
        return NULL
    if isinstance(cell, datetime):
        cell = cell.astimezone(UTC).replace(tzinfo=None) if cell.tzinfo else cell
    return str(cell)


def oracle_golden(case: Case) -> Golden:
    """What DuckDB says to the case's oracle.sql over the same files."""
    assert case.oracle is not None
    return answer(case.oracle)


def answer(oracle: Path) -> Golden:
    """What DuckDB says to a query over the files beside it."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET threads = 1")
        connection.execute(f"SET file_search_path = '{oracle.parent}'")
        found = connection.execute(oracle.read_text(encoding="utf-8"))
        columns = tuple(c[0] for c in found.description or ())
        return Golden(columns, tuple(tuple(map(text, line)) for line in found.fetchall()))


CASES = tuple(Case(path.parent) for path in sorted(ROOT.glob("*/query.sql")))
