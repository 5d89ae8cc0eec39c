"""The pages on partitioning: what they show runs, and their tables say what there is."""

from __future__ import annotations

from dataclasses import fields

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tests.docs.test_sql import bound, code, queries, rows
from tidegate.operate.aggregate.figures import merged_window, merging_constraint, sent_window
from tidegate.operate.figures import ToldWindow
from tidegate.plan.lowering.lower import lower
from tidegate.route.registry import PARTITIONERS

PATH = "docs/partitioning.md"
PAGE = (ROOT / PATH).read_text(encoding="utf-8")
DETAILS = (ROOT / "docs/partitioners.md").read_text(encoding="utf-8")
(_, SQL), (PYTHON,) = blocks(PATH, "sql"), blocks(PATH, "python")


def test_its_queries_can_run() -> None:
    used = []
    for query in queries(SQL):
        used += [s.operator.partitioner.text for s in lower(bound(query)).subqueries]
    assert used == ["cam", "hash", "lm?d=3&p=0.2", "hash"]


def test_its_program_runs() -> None:
    packets = tg.Session(master="none").stream("generator:packets", name="packets")
    made = eval(PYTHON, {"packets": packets, "tg": tg})
    assert "shuffle by pk?d=3" in made.explain()


def test_its_tables_are_of_what_there_is() -> None:
    named = PAGE[PAGE.index("| name |") :].split("\n\n")[0]
    assert [name for row in rows(named) for name in code(row[0])] == list(PARTITIONERS)
    table = DETAILS[DETAILS.index("| parameter |") :].split("\n\n")[0]
    said = {(name, of) for row in rows(table) for name in code(row[0]) for of in code(row[1])}
    there = {(f.name, n) for n, made in PARTITIONERS.items() for f in fields(made)}  # type: ignore[arg-type]
    assert said == there


def test_it_names_all_figures() -> None:
    table = DETAILS.split("| figure |")[1].split("\n\n")[0]
    said = [name for row in rows("| figure |" + table) for name in code(row[0])]
    counts = {0: {"groups": 1, "parts": 1, "groups_split": 0}}
    told = ToldWindow(1, 1, counts, {})
    sent = sent_window(told, p=0.5) | merging_constraint(told)
    assert set(said) == {*sent, *merged_window(ToldWindow(1, 1, counts, None))}
    assert len(said) == len(set(said))
