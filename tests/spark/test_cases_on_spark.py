"""Every case on Spark, at one, two or three instances and across a switch: the same golden."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from _pytest.mark import ParameterSet

from tests.cases.case import CASES, Case
from tests.cases.document import DOCUMENTS, Document, Way
from tests.cases.document import run as run_document
from tests.cases.run import Run, outputs_of
from tidegate.execute.spark import task_exchange as spark_shared
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_JOB = spark_shared.SMALL_ROWS
WAYS = {
    "one instance": ("auto", 0, Run(1, 1000)),
    "two instances, shuffled": ("shuffle", 0, Run(2, 1000)),
    "three instances": ("auto", 0, Run(3, 8)),
    "three instances, one job": ("auto", ONE_JOB, Run(3, 8)),
    "switched": ("auto", ONE_JOB, Run(2, 6, {1: 3, 2: 1})),
    "switched, shuffled": ("shuffle", 0, Run(3, 6, {1: 1, 2: 2})),
}
"""How tasks exchange tuples, how small a batch must be for one job, how many instances."""

HALVES = (
    ("one instance", "three instances, one job", "switched, shuffled"),
    ("two instances, shuffled", "three instances", "switched"),
)
"""In each all exchanges, batches of one job and of several, and a switch."""

WITH_FLOATS = ("quantiles", "sliding_by_key")


def turn(number: int, case: Case, way: str) -> ParameterSet:
    """Half of the ways for each case; all where only Spark can run it, and in the long mode.

    What a case gives with other instances and switches is tested without Spark as well.
    """
    taken = case.needs_spark or way in HALVES[number % 2]
    marks = () if taken else (pytest.mark.long,)
    return pytest.param(case, way, id=f"{way}-{case.name}", marks=marks)


TURNS = [turn(number, case, way) for number, case in enumerate(CASES) for way in WAYS]


def test_every_way_is_taken_by_half_of_the_cases() -> None:
    assert sorted([*HALVES[0], *HALVES[1]]) == sorted(WAYS)
    taken = Counter(values[1] for values, marks, _ in TURNS if not marks)
    assert set(taken) == set(WAYS)
    assert min(taken.values()) >= len(CASES) // 2 >= 12


@pytest.mark.parametrize(("case", "way"), TURNS)
def test_a_run_on_spark_gives_the_golden(
    case: Case, way: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, small, run = WAYS[way]
    monkeypatch.setattr(spark_shared, "SMALL_ROWS", small)
    if way == "three instances, one job":
        monkeypatch.setattr(spark_shared, "TINY_ROWS", 0)
    case.check(outputs_of(case, Place(session=spark, exchange=exchange), run))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_a_query_of_several_operators_gives_the_golden(
    document: Document, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job for each subquery, and switches of each at another batch."""
    monkeypatch.setattr(spark_shared, "TINY_ROWS", 0)
    document.check(run_document(document, Way(45, 2, staggered=(3, 1)), Place(session=spark)))


@pytest.mark.parametrize("case", [c for c in CASES if c.name in WITH_FLOATS], ids=lambda c: c.name)
def test_all_exchanges_and_one_process_agree_to_the_last_bit(
    case: Case, spark: SparkSession
) -> None:
    here = _rows(outputs_of(case, Place("none"), Run(1, 5)))
    assert _rows(outputs_of(case, Place(session=spark), Run(3, 5))).equals(here)
    shuffled = Place(session=spark, exchange="shuffle")
    assert _rows(outputs_of(case, shuffled, Run(2, 5))).equals(here)


def _rows(outputs: list[BatchOutput]) -> pa.Table:
    return pa.concat_tables([o.rows for o in outputs])


def test_side_outputs_that_pass_by_spark_sql_leave_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    (case,) = (c for c in CASES if c.name == "prefix_in_spark_sql")
    place = Place(session=spark)
    loop = prepare(case.plan(place), place, {None: MemorySink()}, Run(2, 6).options, str(tmp_path))
    assert loop.run().counters["rows_late"] == 2
    assert not list((tmp_path / "staged").iterdir())
