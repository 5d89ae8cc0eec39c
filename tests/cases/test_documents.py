"""The queries of the documents, run in many ways without Spark: always what DuckDB says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.case import Golden, answer
from tests.cases.document import DOCUMENTS, Document, Way, run, run_killed
from tidegate.plan.physical import OPERATOR_CLOUD, OPERATOR_SET, QUERY_CLOUD

SAME_CUT = (Way(35, 1), Way(35, 3), Way(35, 2, staggered=(3, 1, 4)))

OTHERS = {
    "at once": Way(),
    "in small batches": Way(17, 2),
    "as a query-cloud": Way(60, 2, QUERY_CLOUD, switches={1: 3, 2: 1}),
    "as an operator-cloud": Way(35, 3, OPERATOR_CLOUD, staggered=(1, 4, 2)),
}

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)


@each_document
def test_instances_and_switches_do_not_change_a_bit(document: Document) -> None:
    first = run(document, SAME_CUT[0])
    document.check(first)
    for way in SAME_CUT[1:]:
        for name, table in run(document, way).items():
            assert table.equals(first[name]), (way, name)


@each_document
@pytest.mark.parametrize("way", OTHERS)
def test_a_run_gives_the_golden(document: Document, way: str) -> None:
    document.check(run(document, OTHERS[way]))


@pytest.mark.parametrize(
    "strategy", [OPERATOR_SET, pytest.param(OPERATOR_CLOUD, marks=pytest.mark.long)]
)
@each_document
def test_a_run_that_is_killed_again_and_again_gives_the_golden(
    document: Document, strategy: str, tmp_path: Path
) -> None:
    document.check(run_killed(document, Way(12, strategy=strategy), tmp_path))


@each_document
def test_the_golden_is_what_duckdb_says(document: Document) -> None:
    for name in document.names:
        golden = Golden.read(document.expected(name))
        assert len(golden.lines) > 10
        assert answer(document.oracle(name)) == golden
