"""Courses of faults at every call to a Postgres server: no row is lost, none is there twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import LONG
from tests.postgres.server import Server
from tests.seed import seeds
from tests.simulation.connector.course import first_wrong, run_courses
from tests.simulation.connector.mutant import POSTGRES_SINK, ConnectorMutant
from tests.simulation.connector.postgres import PostgresCourses

COURSES = 300 if LONG else 40
TRIES = 20


@pytest.fixture
def courses(server: Server) -> Iterator[PostgresCourses]:
    made = PostgresCourses(server)
    yield made
    made.close()


def test_every_call_meets_every_fault(courses: PostgresCourses) -> None:
    campaign = run_courses(courses, seeds(COURSES))
    assert campaign.hits.total() > COURSES


@pytest.mark.parametrize("mutant", POSTGRES_SINK, ids=lambda mutant: mutant.name)
def test_a_defect_is_found(courses: PostgresCourses, mutant: ConnectorMutant) -> None:
    assert first_wrong(courses, mutant, seeds(TRIES)) is not None
