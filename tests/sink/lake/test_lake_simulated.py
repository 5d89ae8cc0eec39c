"""Courses of faults at every call to a lakehouse table: no row is lost, none is there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LONG
from tests.seed import seeds
from tests.simulation.connector.course import first_wrong, run_courses
from tests.simulation.connector.lake import (
    DeltaSinkCourses,
    DeltaSourceCourses,
    IcebergSinkCourses,
    IcebergSourceCourses,
    OnLake,
)
from tests.simulation.connector.mutant import (
    DELTA_SINK,
    ICEBERG_SINK,
    LAKE_SOURCE,
    ConnectorMutant,
)

COURSES = {
    DeltaSinkCourses: 45,
    DeltaSourceCourses: 20,
    IcebergSinkCourses: 40,
    IcebergSourceCourses: 20,
}
TRIES = 20
MUTANTS = [
    *((DeltaSinkCourses, mutant) for mutant in DELTA_SINK),
    *((IcebergSinkCourses, mutant) for mutant in ICEBERG_SINK),
    *((kind, m) for kind in (DeltaSourceCourses, IcebergSourceCourses) for m in LAKE_SOURCE),
]


@pytest.mark.parametrize("kind", COURSES, ids=lambda kind: kind.__name__)
def test_every_call_meets_every_fault(kind: type[OnLake], tmp_path: Path) -> None:
    courses = 300 if LONG else COURSES[kind]
    campaign = run_courses(kind(tmp_path), seeds(courses))
    assert campaign.hits.total() > courses


@pytest.mark.parametrize(("kind", "mutant"), MUTANTS, ids=lambda p: getattr(p, "name", None))
def test_a_defect_is_found(kind: type[OnLake], mutant: ConnectorMutant, tmp_path: Path) -> None:
    assert first_wrong(kind(tmp_path), mutant, seeds(TRIES)) is not None
