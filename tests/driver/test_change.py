"""A changed query on the checkpoint of the old one: rows of the old before, of the new after."""

from __future__ import annotations

import itertools
import logging
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.driver.scene import Row, compacted, csv, loop_of, memory, opened, plan_of, rows_of
from tests.driver.test_replay import Leaky
from tests.operate.aggregate.test_split_keys import Scattered
from tests.seed import seeds
from tidegate.errors import CheckpointError, LostOutputError
from tidegate.operate.join.state import BY_KEY
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.inspect import describe, inspect
from tidegate.state.store import Store

ROWS: list[Row] = [(i * 0.7, "abcd"[i * i % 4], (i * 5) % 11) for i in range(48)]

WINDOW = "FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] WHERE v > 0 GROUP BY k"
SUMS = f"SELECT k, SUM(v) AS s, COUNT(*) AS n, AVG(v) AS a {WINDOW}"
TUPLES = "SELECT k, SUM(v) AS s, MAX(v) AS m FROM s [ROWS 5 SLIDE 2] GROUP BY k"
PAIRS = (
    "SELECT l.k AS k, l.v AS x, r.v AS y FROM s l [RANGE 3 SECONDS] JOIN s r [RANGE 2 SECONDS] "
    "ON l.k = r.k AND l.v <= r.v + 3"
)
COUNTED = "SELECT l.v AS x, r.v AS y FROM s l [ROWS 9] JOIN s r [ROWS 6] ON l.k = r.k"
PASSED = "SELECT k, v FROM s WHERE v > 2"
NESTED = (
    f"SELECT MAX(s) AS m, COUNT(*) AS n FROM (SELECT k, s FROM ({SUMS}) WHERE n > 1) "
    "[RANGE 4 SECONDS]"
)

ACCEPTED = {
    "having": (SUMS, f"{SUMS} HAVING n > 1 AND SUM(v) < 40"),
    "order and limit": (SUMS, f"{SUMS} ORDER BY a DESC LIMIT 2"),
    "other limit": (f"{SUMS} ORDER BY a DESC LIMIT 2", f"{SUMS} ORDER BY s LIMIT 3"),
    "names and order of columns": (SUMS, f"SELECT AVG(v) AS mean, k AS who, SUM(v) AS s {WINDOW}"),
    "expressions": (SUMS, f"SELECT SUM(v) / COUNT(*) + 1 AS r, AVG(v) * 2 AS d {WINDOW}"),
    "one function of three": (SUMS, f"SELECT k, AVG(v) AS a {WINDOW}"),
    "no function": (SUMS, f"SELECT k {WINDOW}"),
    "a filter after the limit": (
        SUMS,
        f"SELECT * FROM ({SUMS} ORDER BY s DESC LIMIT 2) WHERE n > 1",
    ),
    "functions of tuples": (TUPLES, TUPLES.replace("MAX(v) AS m", "MIN(v) AS low, COUNT(*) AS n")),
    "having over tuples": (TUPLES, f"{TUPLES} HAVING SUM(v) > 20"),
    "select after a join": (PAIRS, PAIRS.replace("l.v AS x, ", "")),
    "expression after a join": (PAIRS, PAIRS.replace("l.v AS x", "l.v * r.v AS x, l.v AS z")),
    "where after a join": (PAIRS, f"{PAIRS} WHERE l.v + r.v > 6"),
    "where of one side": (PAIRS, f"{PAIRS} WHERE r.v > 2 AND l.k <> 'a'"),
    "one condition more": (f"{PAIRS} WHERE r.v > 2", f"{PAIRS} WHERE l.v > 1 AND r.v > 2"),
    "on": (PAIRS, PAIRS.replace("l.k = r.k", "l.v = r.v + 1")),
    "on without an index": (PAIRS, PAIRS.replace("l.k = r.k AND l.v <= r.v + 3", "l.k <> r.k")),
    "pairs of tuples": (COUNTED, COUNTED.replace("l.v AS x", "l.k AS k") + " AND l.v > 3"),
    "everything without state": (PASSED, "SELECT v * 2 AS w FROM s WHERE k = 'a'"),
    "after the last of two": (NESTED, NESTED.replace("MAX(s) AS m, ", "") + " HAVING n > 2"),
}

REFUSED = {
    "where": (SUMS, SUMS.replace("v > 0", "v > 1"), "aggregate was made with what has changed"),
    "window": (SUMS, SUMS.replace("RANGE 6", "RANGE 8"), "aggregate was made with what has"),
    "keys": (SUMS, SUMS.replace("GROUP BY k", "GROUP BY k, v % 2"), "aggregate was made with what"),
    "a new function": (
        SUMS,
        SUMS.replace("AVG(v)", "MAX(v)"),
        "the state of aggregate does not have MAX(v) of bigint",
    ),
    "another error": (
        f"{SUMS} WITH ERROR 10 PERCENT BUDGET 30 ROWS",
        f"{SUMS} WITH ERROR 5 PERCENT BUDGET 30 ROWS",
        "- error 10 percent confidence 95 percent budget 30 rows\n    + error 5 percent",
    ),
    "a function in HAVING": (SUMS, f"{SUMS} HAVING MIN(v) > 1", "does not have MIN(v) of bigint"),
    "a column of tuples": (
        TUPLES,
        TUPLES.replace("MAX(v)", "MAX(v + 1)"),
        "does not have v + 1 (bigint)",
    ),
    "a column of a join": (
        PAIRS.replace("l.v AS x, ", "").replace(" AND l.v <= r.v + 3", ""),
        PAIRS,
        "the state of join does not have left v (bigint)",
    ),
    "a condition less before a join": (
        f"{PAIRS} WHERE r.v > 2",
        PAIRS,
        "the state of join was made with what has changed",
    ),
    "a window of a join": (PAIRS, PAIRS.replace("RANGE 2", "RANGE 4"), "join was made with what"),
    "what another keeps state of": (
        NESTED,
        NESTED.replace("n > 1", "n > 2"),
        "the state of aggregate2 was made of rows of",
    ),
    "a limit that counts": (
        f"{PASSED} LIMIT 30",
        f"{PASSED} LIMIT 40",
        "the state of process was made with what has changed",
    ),
    "no aggregate any more": (
        SUMS,
        PASSED,
        "has state of aggregate, the query would keep state of nothing",
    ),
    "an aggregate": (PASSED, SUMS, "has state of nothing, the query would keep state of aggregate"),
}


def mixed(old: Plan, new: Plan, batches: int, place: Path, **options: Any) -> list[list[Any]]:
    """The rows of each batch: the old query does so many, the new one the rest."""
    return [*_some(old, place, batches, **options), *_some(new, place, None, **options)]


@cache
def alone(query: str) -> list[list[Any]]:
    """The rows of each batch of a query that stays as it is."""
    with TemporaryDirectory() as place:
        return _some(plan_of(query), Path(place), None)


def _some(plan: Plan, place: Path, batches: int | None, **options: Any) -> list[list[Any]]:
    sink = MemorySink()
    loop = loop_of(plan, [memory(*ROWS, end=True)], place, sink, batch_rows=4, **options)
    counts = [0]
    for _ in itertools.count() if batches is None else range(batches):
        if loop.step() is None:
            break
        compacted(loop)
        counts.append(sink.table().num_rows)
    loop.close()
    rows = rows_of(sink)
    return [rows[a:b] for a, b in itertools.pairwise(counts)]


def chosen_plan(sql: str, choices: Choices) -> Plan:
    stream = StreamDef("s", (), "ts", 0, None, memory().schema)
    return lower(single(bind(read_script(sql), {"s": stream})), None, choices)


def split_plan(sql: str) -> Plan:
    """The plan of a query whose keys are split, so that windows are merged."""
    return chosen_plan(sql, Choices(partitioner=Scattered()))


def keyed_plan(sql: str) -> Plan:
    """The plan of a join whose tuples are where their keys are."""
    return chosen_plan(sql, Choices(join=JoinOptions(routing=BY_KEY, buckets=8)))


@pytest.mark.parametrize("name", ACCEPTED)
def test_rows_are_those_of_the_old_query_and_then_of_the_new_one(name: str, tmp_path: Path) -> None:
    old, new = ACCEPTED[name]
    whole = [alone(query) for query in (old, new)]
    (seed,) = seeds(1)
    at = 5 + seed % 4
    place = tmp_path / "mixed"
    found = mixed(plan_of(old), plan_of(new), at, place, instances=3)
    assert found == whole[0][:at] + whole[1][at:]
    assert any(found[:at])
    assert any(found[at:])
    facts = inspect(Store.open(place), verify=True)
    assert facts["verified"]["problems"] == []
    (change,) = facts["query_changes"]
    assert change["batch"] == at
    assert f"batch {at}: query changed: " in describe(Store.open(place))


def test_windows_whose_keys_are_split(tmp_path: Path) -> None:
    old, new = split_plan(SUMS), split_plan(f"SELECT AVG(v) AS a, k {WINDOW} HAVING COUNT(*) > 1")
    whole = [_some(q, tmp_path / str(i), None) for i, q in enumerate((old, new))]
    assert mixed(old, new, 7, tmp_path / "mixed") == whole[0][:7] + whole[1][7:]


@pytest.mark.parametrize("on", ["l.v = r.v + 1", "l.k = r.k AND l.v = r.v + 1"])
def test_tuples_that_were_dealt_by_other_keys_are_found(on: str, tmp_path: Path) -> None:
    changed = PAIRS.replace("l.k = r.k AND l.v <= r.v + 3", on)
    whole = [alone(query) for query in (PAIRS, changed)]
    found = mixed(keyed_plan(PAIRS), keyed_plan(changed), 6, tmp_path, instances=3)
    assert found == whole[0][:6] + whole[1][6:]
    assert any(found[6:])


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_state_does_not_allow_is_refused_with_what_changed(
    name: str, tmp_path: Path
) -> None:
    old, new, reason = REFUSED[name]
    _some(plan_of(old), tmp_path, 2)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(CheckpointError) as refused:
        loop_of(plan_of(new), [memory(*ROWS, end=True)], tmp_path)
    assert reason in str(refused.value)
    assert "What changed:\n  " in str(refused.value)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    _some(plan_of(old), tmp_path, 1)


def test_back_and_forth_and_on_again(tmp_path: Path) -> None:
    """The names of columns in the state stay those of the first query."""
    queries = [
        SUMS,
        f"SELECT AVG(v) AS a, SUM(v) AS s {WINDOW}",
        f"SELECT AVG(v) AS a, SUM(v) AS s {WINDOW}",
        f"SELECT SUM(v) AS s {WINDOW} HAVING AVG(v) > 3",
    ]
    whole = [alone(query) for query in queries]
    place, found = tmp_path / "mixed", []
    for query in queries:
        found += _some(plan_of(query), place, 2)
    assert found == [rows for i, w in enumerate(whole) for rows in w[2 * i : 2 * i + 2]]
    assert [c["batch"] for c in inspect(Store.open(place))["query_changes"]] == [2, 6]
    with pytest.raises(CheckpointError, match=r"does not have COUNT\(\*\)"):
        loop_of(plan_of(SUMS), [memory(*ROWS, end=True)], place)


def test_only_a_committed_batch_changes_the_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A start that came to nothing leaves the state to the old query."""
    less = f"SELECT k {WINDOW}"
    _some(plan_of(SUMS), tmp_path, 3)
    with caplog.at_level(logging.WARNING):
        _some(plan_of(less), tmp_path, 0)
    (told,) = caplog.messages
    assert told.startswith(f"{tmp_path}: the query has changed; from batch 3 on: aggregate: - sel")
    assert inspect(Store.open(tmp_path))["query_changes"] == []
    _some(plan_of(SUMS), tmp_path, 1)
    assert inspect(Store.open(tmp_path))["query_changes"] == []
    assert '"query"' not in max(tmp_path.glob("manifest/*")).read_text(), "meta.json has it"


def test_lost_output_is_made_again_by_the_query_that_made_it(tmp_path: Path) -> None:
    new, sink = f"{SUMS} HAVING n > 1", Leaky()
    sink.loses = {3}
    with pytest.raises(LostOutputError):
        loop_of(plan_of(SUMS), [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=4).run()
    sink.loses = {3}
    with pytest.raises(LostOutputError, match=r"another query.*Start once with that query"):
        loop_of(plan_of(new), [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=4)
    sink.loses = {3}
    loop = loop_of(plan_of(SUMS), [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=4)
    loop.step()
    loop.close()
    sink.loses = {4}
    with pytest.raises(LostOutputError):
        loop_of(plan_of(new), [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=4).run()
    sink.loses = {4}
    loop_of(plan_of(new), [memory(*ROWS, end=True)], tmp_path, sink, batch_rows=4).run()
    whole = [Leaky(), Leaky()]
    for query, steady in zip((SUMS, new), whole):
        loop_of(
            plan_of(query), [memory(*ROWS, end=True)], tmp_path / query[-3:], steady, batch_rows=4
        ).run()
    assert all(sink.batches[b].equals(whole[b > 3].batches[b]) for b in whole[0].batches)
    assert [c["batch"] for c in inspect(Store.open(tmp_path))["query_changes"]] == [4]


def test_a_finished_checkpoint_is_of_its_query(tmp_path: Path) -> None:
    _some(plan_of(SUMS), tmp_path, None)
    with pytest.raises(CheckpointError, match="a changed query, and its run has finished"):
        loop_of(plan_of(f"{SUMS} HAVING n > 1"), [memory(*ROWS, end=True)], tmp_path)


def test_checkpoints_without_a_record_are_refused_as_before_and_get_one(tmp_path: Path) -> None:
    """Those of an earlier version: they know the fingerprint alone."""
    csv(tmp_path / "s.csv", *ROWS)
    place, new = tmp_path / "ckpt", f"{SUMS} HAVING n > 1"

    def run(query: str, batches: int) -> None:
        loop = loop_of(plan_of(query), [opened(str(tmp_path / "s.csv"))], place, batch_rows=4)
        for _ in range(batches):
            loop.step()
        loop.close()

    run(SUMS, 3)
    store = Store.open(place)
    meta = store.meta()
    assert meta is not None
    del meta["query"]
    store.delete("meta.json")
    for name in ("manifest", "segment", "gate", "staged", "epoch"):
        (place / name).rename(tmp_path / name)
    assert Store.open(place).create(meta)
    for name in ("manifest", "segment", "gate", "staged", "epoch"):
        (place / name).rmdir()
        (tmp_path / name).rename(place / name)
    with pytest.raises(CheckpointError, match="one of another or of a changed query"):
        run(new, 1)
    run(SUMS, 1)
    run(new, 1)
    assert [c["batch"] for c in inspect(Store.open(place))["query_changes"]] == [4]
