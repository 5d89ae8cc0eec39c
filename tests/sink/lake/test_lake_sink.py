"""The sinks of lakehouse tables: exactly once through kills at any call, fenced, beside others."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from tests.sink.lake.place import Lake
from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.sink.lake.sink import LakeSink
from tidegate.sink.lake.table import AddedFile, LakeTable
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt

TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("ts", TIME), ("k", pa.string()), ("n", pa.int16())])
LATE = Part(side="late", stream="rides")


class NoKeep(Keep):
    """Nothing is kept in the checkpoint."""


def rows(*numbers: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = [pa.array(numbers, pa.int64()).cast(TIME), [f"k{n}" for n in numbers], numbers]
    columns += [[float(n) for n in numbers]] * (len(schema) - 3)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema)


def opened(
    lake: Lake,
    newest: int | None = None,
    owner: int = 0,
    more: str = "",
    checkpoint: str = "c1",
    schema: pa.Schema = SCHEMA,
) -> LakeSink:
    sink = lake.sink(more)
    at = None if newest is None else BatchId(newest)
    sink.open(Opening(schema, None, at, NoKeep(), owner, checkpoint=checkpoint))
    return sink


def written(sink: LakeSink, batch: int, *parts: pa.Table) -> Sequence[Receipt]:
    """What a batch leaves before it is committed; tasks have pickled writers."""
    writer = pickle.loads(pickle.dumps(sink.begin(BatchId(batch))))
    receipts = [writer.write(Part(n), part) for n, part in enumerate(parts)]
    return sink.prepare(BatchId(batch), [Receipt.from_dict(r.to_dict()) for r in receipts])


def numbers(lake: Lake) -> list[int]:
    return [row["n"] for row in lake.rows()]


def test_a_batch_is_seen_when_it_is_published_and_in_order(lake: Lake) -> None:
    sink = opened(lake)
    receipts = written(sink, 0, rows(1, 2), rows(3))
    assert len(lake.staged()) == 2
    assert numbers(lake) == []
    sink.publish(BatchId(0), receipts)
    receipts = written(sink, 1, rows(4))
    sink.publish(BatchId(1), receipts)
    assert numbers(lake) == [1, 2, 3, 4]
    assert lake.table().num_rows == 4
    commits = lake.commits()
    opened(lake, 1, 1).publish(BatchId(1), receipts)
    assert lake.commits() == commits
    assert numbers(lake) == [1, 2, 3, 4]


class Died(BaseException):
    """The process is gone."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, table: type[LakeTable], after: bool) -> Iterator[None]:
    """Die before or after the commit of a table."""
    commit = table.commit

    def fatal(self: Any, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        if after:
            commit(self, batch, owner, files)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(table, "commit", fatal)
        yield


class Run:
    """Two batches of a query whose process dies once; manifests are a list that outlives it."""

    CALLS = ("open", "begin", "write 0", "write 1", "prepare", "commit", "publish", "close")

    def __init__(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, self.monkeypatch = lake, monkeypatch
        self.manifests: list[Sequence[Receipt]] = []
        self.owner = 0

    def go(self, dies_after: str | None = None, at: int = 0, commit: str | None = None) -> None:
        """Run to the end, or to the death of the process."""
        sink = self.lake.sink()
        newest = BatchId(len(self.manifests) - 1) if self.manifests else None
        sink.open(Opening(SCHEMA, None, newest, NoKeep(), self.owner, checkpoint="c1"))
        self.owner += 1
        if newest is not None:
            sink.publish(newest, self.manifests[-1])
        for batch in range(len(self.manifests), 2):
            fatal = dies_after if batch == at else None
            self.batch(sink, BatchId(batch), fatal, commit if batch == at else None)
        sink.close()

    def batch(self, sink: LakeSink, batch: BatchId, fatal: str | None, commit: str | None) -> None:
        def passed(call: str) -> None:
            if call == fatal:
                raise Died

        passed("open")
        writer = sink.begin(batch)
        passed("begin")
        receipts = []
        for part in range(2):
            receipts.append(writer.write(Part(part), rows(10 * batch + part)))
            passed(f"write {part}")
        receipts = list(sink.prepare(batch, receipts))
        passed("prepare")
        self.manifests.append([Receipt.from_dict(r.to_dict()) for r in receipts])
        passed("commit")
        if commit is None:
            sink.publish(batch, receipts)
        else:
            table = type(sink._opened)
            with dying(self.monkeypatch, table, commit == "after"):
                sink.publish(batch, receipts)
        passed("publish")


@pytest.mark.parametrize("at", range(2))
def test_killed_between_any_two_calls(lake: Lake, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = [{"dies_after": call} for call in Run.CALLS[:-1]]
    kills += [{"commit": "before"}, {"commit": "after"}]
    for number, kill in enumerate(kills):
        own = type(lake)(lake.folder / str(number))
        own.folder.mkdir()
        run = Run(own, monkeypatch)
        with pytest.raises(Died):
            run.go(at=at, **kill)
        run.go()
        assert numbers(own) == [0, 1, 10, 11], kill
        assert own.table().num_rows == 4, kill
        assert len(own.staged()) == 4, (kill, own.staged())
        commits = own.commits()
        run.go()
        assert (own.commits(), numbers(own)) == (commits, [0, 1, 10, 11]), kill


def test_an_answer_that_is_lost_is_found_in_the_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(lake)
    receipts = written(sink, 0, rows(1))
    with dying(monkeypatch, type(sink._opened), after=True), pytest.raises(Died):
        sink.publish(BatchId(0), receipts)
    sink.publish(BatchId(0), receipts)
    assert numbers(lake) == [1]


def test_an_owner_who_was_thought_dead_adds_nothing(lake: Lake) -> None:
    old = opened(lake)
    receipts = written(old, 0, rows(1))
    new = opened(lake, newest=0, owner=1)
    new.publish(BatchId(0), receipts)
    old.publish(BatchId(0), receipts)  # is in, so there is nothing to do
    new.publish(BatchId(1), written(new, 1, rows(2)))
    with pytest.raises(SinkError, match=r"no later owner .* than this run, 0; got run 1\. That"):
        old.publish(BatchId(2), written(old, 2, rows(2)))
    assert numbers(lake) == [1, 2]


def test_what_an_earlier_run_left_is_removed_after_it_is_fenced(lake: Lake) -> None:
    old = opened(lake)
    old.publish(BatchId(0), written(old, 0, rows(1)))
    receipts = written(old, 1, rows(2))
    new = opened(lake, newest=0, owner=3)
    kept = written(new, 1, rows(2))
    assert len(lake.staged()) == 2
    with pytest.raises(SinkError, match="than this run, 0; got run 3"):
        old.publish(BatchId(1), receipts)
    new.publish(BatchId(1), kept)
    assert numbers(lake) == [1, 2]


def test_others_add_rows_beside(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a commit that was prepared on what was there then, each time."""
    sink = opened(lake)
    table = type(sink._opened)
    commit, other = table.commit, rows(100)
    tries = []

    def late(self: Any, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        tries.append(batch)
        if tries.count(batch) < 3:
            lake.append(other.cast(lake.table().schema))
        commit(self, batch, owner, files)

    monkeypatch.setattr(table, "commit", late)
    for batch in range(2):
        sink.publish(BatchId(batch), written(sink, batch, rows(batch)))
    assert sorted(lake.table().column("n").to_pylist())[:3] == [0, 1, 100]
    ours = [n for n in lake.table().column("n").to_pylist() if n < 100]
    assert sorted(ours) == [0, 1]


def test_two_owners_at_once_add_a_batch_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one commits between the look of the earlier one and its commit."""
    old = opened(lake)
    receipts = written(old, 0, rows(1))
    new = opened(lake, newest=0, owner=1)
    table = type(old._opened)
    commit, once = table.commit, iter([True])

    def overtaken(self: Any, batch: int | None, owner: int, files: Sequence[AddedFile]) -> None:
        if owner == 0 and next(once, False):
            new.publish(BatchId(0), receipts)
        commit(self, batch, owner, files)

    monkeypatch.setattr(table, "commit", overtaken)
    old.publish(BatchId(0), receipts)
    assert numbers(lake) == [1]
    assert lake.table().num_rows == 1


@pytest.mark.parametrize("harm", ["gone", "short", "other"])
def test_a_part_that_is_lost_is_written_again(lake: Lake, harm: str) -> None:
    sink = opened(lake)
    receipts = written(sink, 0, rows(1), rows(2))
    path = next(p for p in lake.staged() if "part-00001" in p)
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(0)
        file.truncate()
        file.write({"gone": data, "short": data[:-9], "other": data[:-9] + bytes(9)}[harm])
    if harm == "gone":
        os.unlink(path)
    again = opened(lake, newest=0, owner=1)
    with pytest.raises(LostOutputError, match="a part of a committed batch must be whole"):
        again.publish(BatchId(0), receipts)
    again.publish(BatchId(0), written(again, 0, rows(1), rows(2)))
    assert numbers(lake) == [1, 2]
    assert len(lake.staged()) == 2
    with pytest.raises(SinkError, match="got run 1"):
        sink.publish(BatchId(1), written(sink, 1, rows(3)))


def test_side_outputs_that_are_in_stay_when_the_rows_are_written_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late rows were committed, then the process died, then the part of the rows was lost."""

    def made(sink: LakeSink) -> list[Receipt]:
        writer = sink.begin(BatchId(0))
        late = writer.write(LATE, pa.table({"k": ["a"]}))
        return list(sink.prepare(BatchId(0), [writer.write(Part(0), rows(1)), late]))

    sink = opened(lake)
    receipts = made(sink)
    os.unlink(next(p for p in lake.staged() if p.endswith(receipts[0].name)))
    with pytest.raises(LostOutputError):
        sink.publish(BatchId(0), receipts)
    assert lake.table("_late/rides").num_rows == 1
    again = opened(lake, newest=0, owner=1)
    with pytest.raises(LostOutputError):
        again.publish(BatchId(0), receipts)
    again.publish(BatchId(0), made(again))
    assert numbers(lake) == [1]
    assert lake.table("_late/rides").to_pylist() == [{"k": "a"}]


def test_a_query_with_one_more_column_adds_it(lake: Lake) -> None:
    sink = opened(lake)
    sink.publish(BatchId(0), written(sink, 0, rows(1)))
    wider = SCHEMA.append(pa.field("x", pa.float64()))
    more = opened(lake, newest=0, owner=1, schema=wider)
    more.publish(BatchId(1), written(more, 1, rows(2, schema=wider)))
    found = {row["n"]: row["x"] for row in lake.table().to_pylist()}
    assert found == {1: None, 2: 2.0}


def test_other_changes_of_columns_are_refused_by_name(lake: Lake) -> None:
    sink = opened(lake)
    sink.publish(BatchId(0), written(sink, 0, rows(1)))
    other = pa.schema([*list(SCHEMA)[:2], pa.field("n", pa.string())])
    with pytest.raises(OptionError, match=r"column n must be of the type .*; got string\. Use"):
        opened(lake, 0, 1, schema=other)
    with pytest.raises(OptionError, match="must give all columns of the table: ts, k, n; got none"):
        opened(lake, 0, 1, schema=pa.schema(list(SCHEMA)[:2]))
    assert numbers(lake) == [1]


def test_types_that_tables_do_not_have(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"column d must have a type that .* Use CAST"):
        opened(lake, schema=SCHEMA.append(pa.field("d", pa.duration("us"))))
    assert not lake.there()


def test_a_table_of_another_checkpoint(lake: Lake) -> None:
    sink = opened(lake)
    sink.publish(BatchId(0), written(sink, 0, rows(1)))
    with pytest.raises(OptionError, match="that no other one has made; got a table of checkpoint"):
        opened(lake, checkpoint="c2")
    beside = opened(lake, checkpoint="c2", more="?append=true")
    beside.publish(BatchId(0), written(beside, 0, rows(2)))
    assert sorted(numbers(lake)) == [1, 2]


def test_a_table_with_fewer_or_more_batches_than_the_checkpoint(lake: Lake) -> None:
    first = opened(lake)
    first.publish(BatchId(0), written(first, 0, rows(1)))
    first.publish(BatchId(1), written(first, 1, rows(2)))
    with pytest.raises(OptionError, match="nothing beyond batch 0 of this checkpoint; got batch 1"):
        opened(lake, newest=0)
    with pytest.raises(OptionError, match="up to batch 4; got none after batch 1"):
        opened(lake, newest=5)
    with pytest.raises(OptionError, match="must have the results of this checkpoint"):
        opened(lake, newest=5, checkpoint="c3")


def test_late_and_rejected_rows_have_tables_of_their_own(lake: Lake) -> None:
    sink = opened(lake)
    writer = sink.begin(BatchId(0))
    late = pa.table({"k": ["a"], "_reason": ["late"]})
    receipts = [writer.write(Part(0), rows(1)), writer.write(LATE, late)]
    receipts.append(writer.write(Part(side="rejected"), pa.table({"_raw": ["x"]})))
    sink.prepare(BatchId(0), receipts)
    sink.publish(BatchId(0), receipts)
    sink.publish(BatchId(0), receipts)
    writer = sink.begin(BatchId(1))  # a batch of which all rows were late
    receipts = [writer.write(LATE, late.append_column("more", [[2]]))]
    sink.prepare(BatchId(1), receipts)
    sink.publish(BatchId(1), receipts)
    assert numbers(lake) == [1]
    found = lake.table("_late/rides").to_pylist()
    assert sorted(map(str, (row["more"] for row in found))) == ["2", "None"]
    assert lake.table("_rejected").to_pylist() == [{"_raw": "x"}]
    again = opened(lake, newest=1, owner=1)
    again.publish(BatchId(1), receipts)
    assert lake.table("_late/rides").num_rows == 2


def test_what_is_not_committed_is_removed_at_the_end(lake: Lake) -> None:
    sink = opened(lake)
    sink.begin(BatchId(0)).write(Part(0), rows(1))
    sink.close()
    assert lake.staged() == []
    assert numbers(lake) == []
