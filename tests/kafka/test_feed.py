"""The driver's consumer: it begins with a partition where the gate says, not before."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from tools.kafka import Broker

from tests.kafka.topic import send, spread, until, value
from tidegate.errors import SourceError
from tidegate.kafka.address import KafkaAddress
from tidegate.source.kafka.connector import KafkaConnector
from tidegate.source.kafka.decode import CarriedRecords, CarriedRows, CarryLimits
from tidegate.source.kafka.partition import KafkaReader
from tidegate.source.kafka.topic import Topic
from tidegate.source.message.value import ValueLayout
from tidegate.source.registry import open_uri
from tidegate.source.subscription import Subscription


def opened(broker: Broker, topic: str, limits: CarryLimits) -> KafkaConnector:
    uri = f"kafka://{broker.address}/{topic}"
    address = KafkaAddress.parse(uri, "r", SourceError, ())
    return KafkaConnector(Topic(address), Subscription(uri, "r", "ts", True), limits=limits)


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


def test_tasks_are_given_rows_of_few_records_and_fetch_many_themselves(
    broker: Broker, topic: str
) -> None:
    """Every task of a small batch reads all of it: the brokers are asked for it once."""
    broker.create(topic, 1)
    send(broker, topic, spread(range(40), 1))
    for most, carried in ((40, CarriedRows), (20, CarriedRecords), (19, type(None))):
        connector = opened(broker, topic, CarryLimits(records=most))
        (source,) = connector.discover()
        source.start(0)
        assert source.extend(40) == 40
        reader: KafkaReader = pickle.loads(pickle.dumps(source.reader(5, 25)))
        assert isinstance(reader.carried, carried)
        found = reader.read(["v"])
        assert found.table.to_pylist() == [{"v": n} for n in range(5, 25)]
        assert found.seq.tolist() == list(range(5, 25))
        connector.close()


def test_all_partitions_of_a_small_batch_are_decoded_once_for_the_gate_and_the_tasks(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the plain way each partition is decoded by itself: for its times, and by each task."""
    broker.create(topic, 3)
    odd = [(0, b"{no json"), (1, b'{"ts": "2024-01-01T00:00:00Z", "k": "a", "v": "x"}'), (1, None)]
    send(broker, topic, [*spread(range(30), 3), *odd, *spread(range(30, 39), 3)])
    passes: list[int] = []
    parse = ValueLayout.parse

    def counted(self: ValueLayout, values: list[bytes], schema: pa.Schema | None = None) -> object:
        passes.append(len(values))
        return parse(self, values, schema)

    found = []
    for limits in (CarryLimits(), CarryLimits(records=0)):
        connector = opened(broker, topic, limits)
        sources = connector.discover()
        for source in sources:
            source.start(0)
        ends = [14, 15, 13]
        assert [s.extend(end) for s, end in zip(sources, ends, strict=True)] == ends
        with monkeypatch.context() as patch:
            patch.setattr(ValueLayout, "parse", counted)
            gate = [s.times(2, end) for s, end in zip(sources, ends, strict=True)]
            work = pickle.dumps([s.reader(2, end) for s, end in zip(sources, ends, strict=True)])
            tasks = [[r._read().rows for r in pickle.loads(work)] for _ in range(2)]
        found.append(
            (
                [(times[valid].tolist(), valid.tolist()) for times, valid in gate],
                [[(r.table.to_pylist(), r.seq.tolist(), r.rejects) for r in t] for t in tasks],
            )
        )
        connector.close()
    assert found[0] == found[1]
    assert [len(rejects) for _, _, rejects in found[0][1][0]] == [1, 2, 0]
    # One pass for all; partitions with odd ones are looked at for their times alone. Else nine.
    assert len(passes) == 3 + 9
    assert passes[0] == 41


def test_decoded_rows_do_not_depend_on_how_records_came(broker: Broker, topic: str) -> None:
    """Ranges that come one by one are put together, and cut anywhere."""
    broker.create(topic, 1)
    send(broker, topic, [(0, value(0))])
    connector = opened(broker, topic, CarryLimits(records=30))
    (source,) = connector.discover()
    source.start(0)
    for stop in range(1, 21):
        until(lambda stop=stop: source.extend(stop) == stop)
        assert source.times(stop - 1, stop)[1].all()
        send(broker, topic, [(0, value(stop))])
    for start, stop in ((0, 20), (3, 17), (7, 8)):
        reader = source.reader(start, stop)
        assert isinstance(reader.carried, CarriedRows)
        assert reader.read(["v"]).table.column("v").to_pylist() == list(range(start, stop))
    connector.close()


def test_records_that_were_answered_are_held_no_longer(broker: Broker, topic: str) -> None:
    broker.create(topic, 1)
    send(broker, topic, spread(range(40), 1))
    connector = open_uri(f"kafka://{broker.address}/{topic}", "r", "ts", True)
    (source,) = connector.discover()
    source.start(0)
    for upto in (10, 20, 30, 40):
        send(broker, topic, spread(range(upto + 30, upto + 40), 1))
        assert source.extend(upto) >= upto
    end = source.next
    assert source.times(0, end)[1].all()
    held = len(source.shelf)
    assert isinstance(source.reader(0, end).carried, CarriedRows)
    source.answered(end)
    assert len(source.shelf) < held
    reader = source.reader(0, 3)
    assert reader.carried is None
    assert reader.read(["v"]).table.to_pylist() == [{"v": n} for n in range(3)]
    connector.close()
