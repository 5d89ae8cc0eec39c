"""What goes wrong between a sink and its brokers: each batch is in the topic once, or not yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from tools.kafka import Broker

from tests.kafka.output import TopicOutput, batch_rows, meant
from tests.kafka.proxy import (
    ADD_OFFSETS,
    END,
    INIT,
    OFFSET_COMMIT,
    PRODUCE,
    Gone,
    Hold,
    LostAnswer,
    LostRequest,
    Pass,
    Proxy,
    between,
)
from tests.kafka.reading import rows_in
from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.sink.receipt import Part

BATCHES = 3


@pytest.fixture
def output(broker: Broker, topic: str, tmp_path: Path) -> Iterator[TopicOutput]:
    made = TopicOutput(tmp_path, f"kafka://{broker.address}/{topic}?partitions=2")
    yield made
    made.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with between(broker.port) as made:
        yield made


def by_way_of(proxy: Proxy, topic: str, more: str = "") -> str:
    return f"kafka://{proxy.address}/{topic}?partitions=2{more}"


def test_a_run_that_stops_after_any_call_leaves_each_row_once(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    """It does not close its sink, as one that is killed, and its producer stays connected."""
    batches = 2
    calls = 1 + 4 * batches
    for stop in range(calls + 1):
        name = f"{topic}-{stop}"
        output = TopicOutput(tmp_path / name, f"kafka://{broker.address}/{name}?partitions=2")
        made = list(islice(output.go_on(batches), stop))
        assert len(made) == stop
        rest = list(output.go_on(batches))
        assert rows_in(broker, name) == meant(batches), made
        if stop == calls:
            assert rest == ["open", "publish again"], "nothing must be left to do"
        output.close()


@pytest.mark.parametrize("kind", [PRODUCE, ADD_OFFSETS, OFFSET_COMMIT, END])
@pytest.mark.parametrize("fate", [LostRequest, LostAnswer])
def test_lost_requests_and_lost_answers_are_borne_within_a_run(
    broker: Broker, topic: str, output: TopicOutput, proxy: Proxy, kind: int, fate: type[Pass]
) -> None:
    sink = output.start(by_way_of(proxy, topic))
    output.write(sink, 0)
    proxy.plan(kind, fate())
    output.write(sink, 1)
    assert not proxy.fates, "it must have happened"
    output.write(sink, 2)
    assert rows_in(broker, topic) == meant(BATCHES)


@pytest.mark.parametrize("kind", [OFFSET_COMMIT, END])
def test_a_commit_of_which_nobody_can_be_asked_is_looked_up_by_the_next_producer(
    broker: Broker, topic: str, output: TopicOutput, proxy: Proxy, kind: int
) -> None:
    """The client gives up before the brokers can be reached again."""
    sink = output.start(by_way_of(proxy, topic, "&timeout=1s"))
    output.write(sink, 0)
    inits = proxy.count[INIT]
    proxy.plan(kind, Gone(proxy, 1.5))
    output.write(sink, 1)
    assert proxy.count[INIT] > inits, "the first producer must have given up"
    output.write(sink, 2)
    assert rows_in(broker, topic) == meant(BATCHES)


@pytest.mark.parametrize("kind", [PRODUCE, OFFSET_COMMIT, END])
def test_a_writer_that_another_has_taken_over_from_can_write_nothing(
    broker: Broker, topic: str, output: TopicOutput, proxy: Proxy, kind: int
) -> None:
    """It stands still inside of a transaction and goes on when the other is done."""
    zombie = output.start(by_way_of(proxy, topic))
    output.write(zombie, 0)
    hold, failure = Hold(), []
    proxy.plan(kind, hold)

    def write() -> None:
        try:
            output.write(zombie, 1)
        except SinkError as error:
            failure.append(str(error))

    thread = threading.Thread(target=write)
    thread.start()
    assert hold.came.wait(30)
    other = output.start()
    assert rows_in(broker, topic) == meant(2), "what is committed must be there at once"
    hold.let_go.set()
    thread.join(60)
    assert not thread.is_alive()
    assert len(failure) == 1
    assert "must be written by one run at a time; got run 2" in failure[0]
    output.write(other, 2)
    assert rows_in(broker, topic) == meant(BATCHES)


def test_a_transaction_that_takes_longer_than_its_timeout_is_made_again(
    broker: Broker, topic: str, output: TopicOutput, proxy: Proxy
) -> None:
    """Its commit comes when it was ended, by the brokers or by the producer that is next."""
    sink = output.start(by_way_of(proxy, topic, "&timeout=1s"))
    output.write(sink, 0)
    hold = Hold()
    proxy.plan(END, hold)
    thread = threading.Thread(target=output.write, args=(sink, 1))
    thread.start()
    assert hold.came.wait(30)
    assert len(rows_in(broker, topic)) in (2, 4)  # waits until the transaction has ended
    hold.let_go.set()
    thread.join(60)
    assert not thread.is_alive()
    output.write(sink, 2)
    assert rows_in(broker, topic) == meant(BATCHES)


def test_a_broker_that_is_killed_and_started_again_is_waited_for(
    broker: Broker, topic: str, output: TopicOutput, proxy: Proxy
) -> None:
    sink = output.start(by_way_of(proxy, topic))
    output.write(sink, 0)
    hold = Hold()
    proxy.plan(END, hold)
    thread = threading.Thread(target=output.write, args=(sink, 1))
    thread.start()
    assert hold.came.wait(30)
    broker.kill()
    hold.let_go.set()
    broker.start()
    thread.join(90)
    assert not thread.is_alive()
    output.write(sink, 2)
    assert rows_in(broker, topic) == meant(BATCHES)


def forget(broker: Broker, output: TopicOutput) -> None:
    """Delete the marker, as brokers do when it has not been written for long."""
    output.close()
    group = f"tidegate-{output.identity}"
    admin = broker.admin()
    (done,) = admin.delete_consumer_groups([group]).values()
    done.result(30)
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    assert found[group].result(30).topic_partitions == []


@pytest.mark.parametrize("stop", ["commit", "publish"])
def test_without_its_marker_a_batch_is_found_by_the_headers_of_its_records(
    broker: Broker, topic: str, output: TopicOutput, stop: str
) -> None:
    sink = output.start()
    output.write(sink, 0)
    for call in output.writing(sink, 1):
        if call == stop:
            break
    forget(broker, output)
    if stop == "publish":
        output.write(output.start(), 2)
    else:  # there is nothing of it, so it may as well be another topic
        with pytest.raises(OptionError, match=r"up to batch 1; got no record and no marker"):
            output.start()
        output.write(output.start(f"{output.uri}&append=yes"), 2)
    assert rows_in(broker, topic) == meant(BATCHES)


def test_rows_that_are_gone_from_the_checkpoint_are_asked_for_again(
    broker: Broker, topic: str, output: TopicOutput
) -> None:
    """Only where they are needed: a batch that is in the topic needs them no more."""
    output.write(output.start(), 0)
    for call in output.writing(output.start(), 1):
        if call == "commit":
            break
    latest = output.store.latest()
    assert latest is not None
    name = latest.outputs[""][0]["name"]
    output.opening(0).keep.delete(latest.batch, name)  # type: ignore[arg-type]
    with pytest.raises(LostOutputError, match="batch 1 must be in the checkpoint until the topic"):
        output.start()
    sink = output.runs[-1]
    receipt = sink.begin(BatchId(1)).write(Part(), batch_rows(1))
    sink.publish(BatchId(1), [receipt])
    assert rows_in(broker, topic) == meant(2)
