"""What objects are given, converted for all buckets together: each sees its own, and only that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.operate.process.stream import Row, opened, run, spec_of
from tests.operate.process.test_advance import at, bucket
from tidegate.batch import MIN_US
from tidegate.errors import TaskError
from tidegate.operate.process import feed, output_rows
from tidegate.operate.process.advance import advance
from tidegate.operate.process.definition import BUCKET, Process, ProcessSpec

SEVERAL = [at(i, ["abcd"[i % 4]], i) for i in range(40)]


class Told(Process):
    """Every tuple, as it is given."""

    output = {"told": "string"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[str]:
        return (f"{self.bucket} {keys} {tuple}",)


class Greedy(Process):
    """Changes what it is given, which it must not, and keeps the list of keys."""

    output = {"told": "string"}  # noqa: RUF012

    def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[str]:
        tuple.k.append("more")
        keys.append(self.bucket)
        self.keys = keys
        return (f"{self.bucket} {keys} {tuple.k}",)


@pytest.mark.parametrize("keys", [("k",), ("v",), None])
def test_few_objects_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch, keys: Any) -> None:
    rows = [*SEVERAL, *(at(i, ["a", "b", "d"], i) for i in range(40, 45))]
    wanted = run(spec_of(Told, keys), rows)
    assert len(wanted) == {("k",): 40 + 5 * len({bucket(k) for k in "abd"}), ("v",): 45}.get(
        keys, 45 * 5
    )
    monkeypatch.setattr(feed, "_AT_ONCE", 3)
    monkeypatch.setattr(output_rows, "_AT_ONCE", 2)
    assert run(spec_of(Told, keys), rows) == wanted


def test_buckets_that_see_the_same_tuple_share_nothing_that_can_change() -> None:
    told = [f"{number} [{number}] ['a', 'more']" for number in range(5)]
    assert run(spec_of(Greedy, None), [at(1)]) == [(1, text) for text in told]


def test_a_wrong_row_is_told_with_its_bucket_though_others_come_after_it() -> None:
    class Wrong(Process):
        output = {"n": "bigint"}  # noqa: RUF012

        def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[Any]:
            return ("one" if tuple.v == 4 else 1,)

    where = f"test, bucket {bucket('a')}, tuple at 1970-01-01T00:00:00.000004Z: Wrong.on_tuple must"
    assert bucket("a") < max(map(bucket, "bcd"))
    with pytest.raises(TaskError) as caught:
        run(spec_of(Wrong), SEVERAL)
    assert str(caught.value).startswith(where)


def test_a_time_that_python_lacks_is_told_in_the_bucket_that_has_it() -> None:
    type_ = pa.timestamp("us", tz="UTC")
    spec = ProcessSpec(Told, (("t", type_),), ("t",), (("told", pa.string()),), None, "Told")
    times = pa.array([0, 2**62, 1], pa.int64()).cast(type_)
    order = [pa.array([1, 2, 3]), pa.array([0, 0, 0]), pa.array([1, 2, 3])]
    rows = pa.table([pa.array([0, 2, 4], pa.int32()), *order, times], schema=spec.routed)

    def advanced(rows: pa.Table) -> list[str]:
        state = opened([], range(5))
        made, _ = advance(spec, range(5), state, rows, MIN_US, 9, "test", total=5)
        told: list[str] = made["told"].to_pylist()
        return told

    with pytest.raises(
        TaskError, match="test, bucket 2: the times in t must be those of the years"
    ):
        advanced(rows)
    moment = datetime(1970, 1, 1, tzinfo=UTC)
    told = advanced(rows.filter(pa.array([number != 2 for number in rows[BUCKET].to_pylist()])))
    assert told[0] == f"0 [{moment!r}] Tuple(ts={moment.replace(microsecond=1)!r}, t={moment!r})"


def test_rows_without_a_number_for_their_order_are_told() -> None:
    class Placed(Process):
        output = {"place": "bigint"}  # noqa: RUF012

        def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[Any]:
            return (None if tuple.v == 5 else 1,)

    spec = spec_of(Placed)
    spec = ProcessSpec(Placed, spec.columns, spec.keys, spec.output, None, "Placed", order="place")
    rows: list[Row] = SEVERAL
    where = f"bucket {bucket('b')}, tuple at 1970-01-01T00:00:00.000005Z: Placed must give a number"
    with pytest.raises(TaskError, match=where):
        run(spec, rows)
