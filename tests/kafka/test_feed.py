"""The driver's consumer: it begins with a partition where the gate says, not before."""

from __future__ import annotations

import pickle

import pytest
from tools.kafka import Broker

from tests.kafka.topic import send, spread
from tidegate.source.kafka import partition
from tidegate.source.kafka.record import _RECORDS
from tidegate.source.registry import open_uri


@pytest.mark.parametrize("round", range(3))
def test_a_partition_goes_on_where_its_checkpoint_says_though_others_were_read_before(
    broker: Broker, topic: str, round: int
) -> None:
    broker.create(topic, 2)
    send(broker, topic, spread(range(10), 2))
    connector = open_uri(f"kafka://{broker.address}/{topic}", "r", "ts", True)
    one, two = connector.discover()
    one.start(0)
    assert one.extend(5) == 5
    for _ in range(5):
        one.extend(6)
    two.start(4)
    assert two.extend(5) == 5
    assert two.absent(4, 5) == 0
    assert two.reader(4, 5).read(["v"]).table.to_pylist() == [{"v": 9}]
    connector.close()


def test_tasks_are_given_few_records_and_fetch_many_themselves(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task of a small batch reads all of it: the brokers are asked for it once."""
    monkeypatch.setattr(partition, "_MOST_CARRIED", 20)
    broker.create(topic, 1)
    send(broker, topic, spread(range(40), 1))
    connector = open_uri(f"kafka://{broker.address}/{topic}", "r", "ts", True)
    (source,) = connector.discover()
    source.start(0)
    assert source.extend(40) == 40
    few = pickle.loads(pickle.dumps(source.reader(5, 25)))
    many = pickle.loads(pickle.dumps(source.reader(5, 26)))
    assert [few.carried is None, many.carried is None] == [False, True]
    assert few.read(["v"]).table.to_pylist() == [{"v": n} for n in range(5, 25)]
    assert many.read(["v"]).table.to_pylist() == [{"v": n} for n in range(5, 26)]
    connector.close()


def test_records_that_were_taken_are_held_no_longer(broker: Broker, topic: str) -> None:
    broker.create(topic, 1)
    send(broker, topic, spread(range(40), 1))
    connector = open_uri(f"kafka://{broker.address}/{topic}", "r", "ts", True)
    (source,) = connector.discover()
    source.start(0)
    for upto in (10, 20, 30, 40):
        send(broker, topic, spread(range(upto + 30, upto + 40), 1))
        assert source.extend(upto) >= upto
    held = len(_RECORDS)
    source.arrivals.drop(source.next - 1)
    assert len(_RECORDS) < held
    assert source.reader(0, 3).read(["v"]).table.to_pylist() == [{"v": n} for n in range(3)]
    connector.close()
