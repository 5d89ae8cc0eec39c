"""The page on balance: its query and its program run, and its table names the figures there are."""

from __future__ import annotations

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tests.docs.test_sql import code, rows
from tidegate.operate.aggregate.balanced.trimming_figures import BALANCED_SHOWN, POINTLESS_SHOWN

PATH = "docs/balance.md"
PAGE = (ROOT / PATH).read_text(encoding="utf-8")
(SQL,), (PYTHON,) = blocks(PATH, "sql"), blocks(PATH, "python")


def test_its_query_and_its_program_give_the_same() -> None:
    session = tg.Session(master="none")
    tasks = session.stream("generator:tasks?rows=20000&rate=5", name="tasks")
    made = eval(PYTHON, {"tasks": tasks, "tg": tg})
    mine = made.preview(4, read=20_000).to_pylist()
    assert False in {row["exact"] for row in mine}
    written = session.sql(SQL, tasks=tasks).preview(4, read=20_000).to_pylist()
    assert written == mine


def test_its_table_has_every_figure() -> None:
    table = PAGE[PAGE.index("| figure | meaning |") :].split("\n\n")[0]
    assert {name for row in rows(table) for name in code(row[0])} == {
        f.name for f in (*BALANCED_SHOWN, *POINTLESS_SHOWN)
    }
