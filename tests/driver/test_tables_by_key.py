"""Tables that are too large for every task: dealt by key once, and the same rows from then on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

import tidegate as tg
from tests.driver.test_tables import COUNTED, QUERY, kept, names, planned, recorded, rest, zones
from tests.driver.test_tables import folder as folder
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.table_capture import capture, version_of, with_keys
from tidegate.errors import SourceError
from tidegate.memory import Allowance
from tidegate.operate.table_join.deal import Dealing
from tidegate.operate.table_join.table_versions import DealtVersion
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.table.use import TableLimit, TableRoom, table_uses, tables_shown
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import outputs_of
from tidegate.sink.memory import MemorySink
from tidegate.state.store import Store
from tidegate.testing.clock import ManualClock

OF_NAMES = QUERY.replace("z.name F", "y.id F").replace(
    "z.id;", "z.id JOIN zones AS y ON z.name = y.name;"
)
TWO = """
CREATE STREAM rides FROM '{folder}/rides.csv' TIME ts;
CREATE TABLE zones FROM '{folder}/zones.csv'{clause};
CREATE TABLE shops FROM '{folder}/shops.csv';
SELECT r.n, z.name, s.shop FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id
LEFT JOIN shops AS s ON r.zone = s.zone;
"""
SMALL = TableLimit(8, 8)
"""The table of zones has more bytes."""


def loop_over(
    folder: Path, sink: MemorySink, clause: str = "", query: str = QUERY, **more: Any
) -> Loop:
    clock = more.pop("clock", None)
    usual = {"instances": 2, "buckets": 8, "batch_rows": 4, "whole_table_bytes": SMALL.held_bytes}
    options = RunOptions(**{**usual, **more})
    plan = planned(folder, clause, query)
    return prepare(plan, Place("none"), {None: sink}, options, str(folder / "state"), clock=clock)


def files(folder: Path) -> list[str]:
    """The files that the record names, without their folder."""
    version = version_of(recorded(folder)[-1])
    assert isinstance(version, DealtVersion)
    return sorted(Path(file).name for file in version.files)


def by_key_of(folder: Path) -> list[str]:
    """The tables that the record has by key."""
    manifest = Store.open(folder / "state").latest()
    assert manifest is not None
    return sorted(name for name, of in manifest.tables.items() if "by_key" in of[-1])


@pytest.mark.parametrize("query", [QUERY, COUNTED], ids=["rows", "windows"])
def test_the_rows_are_those_of_a_table_that_is_held(folder: Path, query: str) -> None:
    held, by_key = MemorySink(), MemorySink()
    rest(loop_over(folder, held, query=query, whole_table_bytes=1000))
    (version,) = recorded(folder)
    assert "file" in version
    (folder / "state").rename(folder / "other")
    rest(loop_over(folder, by_key, query=query))
    (version,) = recorded(folder)
    assert "file" not in version
    assert (version["rows"], len(version["by_key"])) == (2, 1)
    assert by_key.table().equals(held.table())
    assert kept(folder) == files(folder)


def test_the_rows_are_the_same_on_another_file_system(folder: Path) -> None:
    sink, place = MemorySink(), (_MockFileSystem(), "state")
    options = RunOptions(instances=2, buckets=8, batch_rows=4, whole_table_bytes=8)
    rest(prepare(planned(folder), Place("none"), {None: sink}, options, place))
    assert names(sink) == ["a", "b", None] * 4
    manifest = Store.open(place).latest()
    assert manifest is not None
    assert "by_key" in manifest.tables["zones"][0]


@pytest.mark.parametrize("later", [1000, 1], ids=["held", "by key"])
def test_a_restart_goes_on_as_its_record_says(folder: Path, later: int) -> None:
    """Whatever the limit, the instances and the files are by then."""
    sink = MemorySink()
    loop = loop_over(folder, sink)
    loop.step()
    loop.close()
    (before,) = recorded(folder)
    zones(folder, "other", "rows", "and more")
    rest(loop_over(folder, sink, whole_table_bytes=later, instances=3))
    assert names(sink) == ["a", "b", None] * 4
    assert recorded(folder) == [before]
    assert kept(folder) == files(folder)


def test_a_table_that_is_held_stays_so(folder: Path) -> None:
    sink = MemorySink()
    loop = loop_over(folder, sink, whole_table_bytes=1000)
    loop.step()
    loop.close()
    rest(loop_over(folder, sink))
    assert names(sink) == ["a", "b", None] * 4
    assert "file" in recorded(folder)[-1]


def test_what_a_capture_left_that_failed_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Dealing.write

    def fail(dealing: Dealing, stem: str) -> Any:
        write(dealing, stem)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Dealing, "write", fail)
        with pytest.raises(KeyboardInterrupt):
            loop_over(folder, MemorySink())
    assert kept(folder)
    sink = MemorySink()
    rest(loop_over(folder, sink))
    assert names(sink) == ["a", "b", None] * 4
    assert kept(folder) == files(folder)
    assert not list((folder / "state" / "staged").glob("**/*rows*"))


def test_a_table_that_is_read_again_may_become_large(folder: Path) -> None:
    sink, clock = MemorySink(), ManualClock()
    clause = " REFRESH EVERY '10 minutes'"
    loop = loop_over(folder, sink, clause, clock=clock, whole_table_bytes=180)
    loop.step()
    zones(folder, "x", "y", "a long name of so many bytes")
    clock.sleep(601)
    loop.step()
    clock.sleep(601)
    rest(loop)
    old, new = recorded(folder)
    assert ("file" in old, "file" in new) == (True, False)
    assert names(sink)[-3:] == ["x", "y", "a long name of so many bytes"]


def test_who_limits_the_memory_has_smaller_tables_held() -> None:
    usual, limited = RunOptions(), RunOptions(memory=Allowance.of(3 << 28))
    assert usual.table_limit == TableLimit(1 << 30, 1 << 30)
    assert limited.table_limit == TableLimit(1 << 28, 1 << 30)


@pytest.mark.parametrize(
    ("most", "by_key"),
    [(2000, []), (600, ["shops"]), (100, ["shops", "zones"])],
    ids=["both", "one", "none"],
)
def test_tables_are_held_that_are_within_the_limit_together(
    folder: Path, most: int, by_key: list[str]
) -> None:
    """Each of them is some 430 bytes in the checkpoint, and 64 more for a row."""
    (folder / "shops.csv").write_text("zone,shop\n0,x\n1,y\n")
    sink = MemorySink()
    rest(loop_over(folder, sink, query=TWO, whole_table_bytes=most))
    assert by_key_of(folder) == by_key
    said = "\n".join(tables_shown(planned(folder, query=TWO), TableLimit(most, most)))
    assert said.count("read by ") == len(by_key)
    rows = sink.table().to_pylist()
    found = [(row["name"], row["shop"]) for row in rows]
    assert found == [("a", "x"), ("b", "y"), (None, None)] * 4


def test_a_table_without_a_key_comes_first_and_says_what_is_held_beside_it(folder: Path) -> None:
    (folder / "shops.csv").write_text("zone,shop\n0,x\n1,y\n")
    query = TWO.replace("r.zone = s.zone", "r.zone >= s.zone")
    rest(loop_over(folder, MemorySink(), query=query, whole_table_bytes=500))
    assert by_key_of(folder) == ["zones"]
    (folder / "state").rename(folder / "other")
    both = query.replace("r.zone = z.id", "r.zone >= z.id")
    with pytest.raises(SourceError, match=r"^table shops: .* beside zones, which tasks hold too, "):
        loop_over(folder, MemorySink(), query=both, whole_table_bytes=440)


def test_a_table_without_a_key_is_refused(folder: Path) -> None:
    query = QUERY.replace("r.zone = z.id", "r.zone >= z.id")
    wanted = (
        "table zones: must not be larger than 0 MB, because every task holds it: a join compares "
        "no column of it with =; got 0 MB and more. Compare one with = in ON, leave columns and "
        "rows out that no query needs, or make it a stream with TIME."
    )
    with pytest.raises(SourceError, match=f"^{re.escape(wanted)}$"):
        loop_over(folder, MemorySink(), query=query)
    added = query.replace("z.id;", "z.id AND r.n = z.id;")
    rest(loop_over(folder, MemorySink(), query=added))


def test_initial_state_is_refused(folder: Path) -> None:
    class Known(tg.Process):
        output = {"name": "string"}  # noqa: RUF012

        def __init__(self) -> None:
            self.name = self.state.map("name")

        def on_tuple(self, row: Any, keys: list[Any]) -> Any:
            yield {"name": self.name.get(keys[0])}

    session = tg.Session(master="none")
    rides = session.stream(str(folder / "rides.csv"), time="ts")
    given = session.table(pa.table({"zone": [0, 1], "name": ["a", "b"]}), name="zones")
    node = rides.process(Known, keys="zone", initial=given).node
    plan = lower(node)
    options = RunOptions(whole_table_bytes=8)
    with pytest.raises(SourceError, match="every task holds it: it is the initial state of a pro"):
        prepare(plan, Place("none"), {None: MemorySink()}, options, str(folder / "state"))


def test_explain_says_how_tasks_come_by_the_rows(folder: Path) -> None:
    script = QUERY.format(folder=folder, clause="")
    outputs, plan = outputs_of(script, {}), planned(folder)
    shown = f"zones: {folder}/zones.csv, 2 rows, "
    once = "read once, when the query first starts"
    held, by_key = (
        next(line for line in text.splitlines() if shown in line)
        for text in (explain(outputs, plan), explain(outputs, plan, limit=SMALL))
    )
    assert held.endswith(f"; {once}; held by every task, because it needs at most 1.0 GB there")
    assert by_key.endswith(
        f"; {once}; read by id from the checkpoint, because tasks would need more than 0 MB for it"
    )


def test_a_key_that_a_changed_query_adds_is_dealt_from_what_is_kept(folder: Path) -> None:
    """The file has other rows by then. Those of a key stay in the order that they had there."""
    zones(folder, *"abhabhabh")
    plan = planned(folder)
    both = planned(folder, query=OF_NAMES)
    (table,) = plan.tables
    store = Store.open(folder / "state")
    use = table_uses(plan)["zones"]
    first = capture(TableRoom(SMALL).read(table, use), use, store, "t", SMALL)
    record = {"digest": first.digest, **first.keep(store, "table/a")}
    zones(folder, "other")
    use = table_uses(both)["zones"]
    assert len(use.keys) == 2
    added = with_keys(record, use, store, "table/b", SMALL)
    assert {*record["by_key"]} < {*added["by_key"]} == {key.name for key in use.keys}
    version = version_of(added)
    (lookup,) = (k for s in both.subqueries for p in s.prefixes for k in p.lookups[1:])
    tuples = pa.table({name: ["h", "b", "x"] for name in ("z.name",)})
    index = version.index_for(store.handle(), lookup, tuples)
    assert index.rows is not None
    assert sorted(index.rows.column("y.name").to_pylist()) == ["b"] * 3 + ["h"] * 3
    p, s = index.pairs(tuples, np.zeros(3, np.int64))
    found = [(int(i), index.rows.column("y.id")[int(j)].as_py()) for i, j in zip(p, s, strict=True)]
    assert found == [(0, 2), (0, 5), (0, 8), (1, 1), (1, 4), (1, 7)]
