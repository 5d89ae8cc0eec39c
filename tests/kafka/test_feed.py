"""The driver's consumer: it begins with a partition where the gate says, not before."""

from __future__ import annotations

import pytest
from tools.kafka import Broker

from tests.kafka.topic import send, spread
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
