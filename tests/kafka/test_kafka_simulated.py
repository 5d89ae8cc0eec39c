"""Courses of faults at every call to a broker: no row is lost, none is there twice."""

from __future__ import annotations

import pytest
from tools.kafka import Broker

from tests.conftest import LONG
from tests.seed import seeds
from tests.simulation.connector.course import first_wrong, run_courses
from tests.simulation.connector.kafka import KafkaSinkCourses, KafkaSourceCourses
from tests.simulation.connector.mutant import KAFKA_SINK, KAFKA_SOURCE, ConnectorMutant

OF_SINK, OF_SOURCE = (300, 300) if LONG else (20, 20)
TRIES = 20


def test_every_call_of_the_sink_meets_every_fault(broker: Broker) -> None:
    campaign = run_courses(KafkaSinkCourses(broker), seeds(OF_SINK))
    assert campaign.hits.total() > OF_SINK


def test_every_call_of_the_source_meets_every_fault(broker: Broker) -> None:
    campaign = run_courses(KafkaSourceCourses(broker), seeds(OF_SOURCE))
    assert campaign.hits.total() > OF_SOURCE


@pytest.mark.parametrize("mutant", KAFKA_SINK, ids=lambda mutant: mutant.name)
def test_a_defect_of_the_sink_is_found(broker: Broker, mutant: ConnectorMutant) -> None:
    assert first_wrong(KafkaSinkCourses(broker), mutant, seeds(TRIES)) is not None


@pytest.mark.parametrize("mutant", KAFKA_SOURCE, ids=lambda mutant: mutant.name)
def test_a_defect_of_the_source_is_found(broker: Broker, mutant: ConnectorMutant) -> None:
    assert first_wrong(KafkaSourceCourses(broker), mutant, seeds(TRIES)) is not None
