"""Results as records of a topic, each batch in one transaction.

Until the batch is committed the checkpoint keeps its rows, as the records they will be. Then one
transaction writes them all with a marker of the batch, so a restart can tell whether that happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle, repeat
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import OptionError, RunError, SinkError, near
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import library, make_admin, reason
from tidegate.kafka.schema_registry import SchemaRegistry
from tidegate.kafka.wire import header
from tidegate.sink.address import Address
from tidegate.sink.checkpoint_staging import DroppedSides, KeptParts, part_of, read_kept
from tidegate.sink.folder.form import Form
from tidegate.sink.kafka.avro import avro_schema, avro_values
from tidegate.sink.kafka.marker import Marker, marked_topics
from tidegate.sink.kafka.option import SIDES, KafkaOptions, parsed
from tidegate.sink.kafka.record import (
    AT_MS,
    FORMATS,
    PLAIN,
    RecordParts,
    Values,
    changes_as_records,
    json_values,
    rows_as_records,
)
from tidegate.sink.kafka.scan import has_batch
from tidegate.sink.kafka.topic import ANSWERS, Topics
from tidegate.sink.kafka.transaction import Transactions
from tidegate.sink.kafka.wire import BY_KEY, origin, send
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part, Receipt

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger(__name__)


class KafkaSink:
    """A topic whose committed records are the output, in the output order within each partition.

    The driver writes all records. Late and rejected tuples go to the topics that the options name,
    in the same transaction as the rows. Without such a topic they are counted and dropped, and the
    log says so once.
    """

    parallel = False
    side_outputs = True
    formats = FORMATS

    def __init__(self, address: KafkaAddress, options: KafkaOptions) -> None:
        self._address = address
        self._options = options
        self.upserts = options.upsert
        self._opening: Opening | None = None
        self._admin: AdminClient | None = None
        self._topics: Topics | None = None
        self._transactions: Transactions | None = None
        self._values: Values = json_values
        self._dropped = _dropped_sides()

    def __repr__(self) -> str:
        return f"KafkaSink({self.uri!r})"

    @property
    def uri(self) -> str:
        return f"kafka://{self._address.servers}/{self._address.topic}"

    @staticmethod
    def at(address: Address, output: str | None) -> KafkaSink:
        """The sink of a topic; an output with a name has the topic `TOPIC-NAME`."""
        return KafkaSink(*parsed(address, output))

    @property
    def side_places(self) -> dict[str, str]:
        """Where late and rejected rows are, for the summary of a run."""
        dropped = "were dropped; {0}=TOPIC after the ? of --out keeps them"
        topics = self._options.sides
        return {s: f"are in {topics[s]}" if s in topics else dropped.format(s) for s in SIDES}

    def open(self, opening: Opening) -> None:
        self.close()
        self._opening = opening
        self._dropped = _dropped_sides()
        for name in self._options.key:
            if name not in opening.schema.names:
                must = "key must name columns of the results"
                raise OptionError(self._where, must, name, near(name, opening.schema.names))
        self._admin = make_admin(self._address, OptionError)
        self._topics = Topics(self._address, self._options, self._admin)
        self._topics.check()
        self._check_results(opening, self._admin)
        self._values = self._registered(opening.schema)

    def begin(self, batch: BatchId) -> RecordParts:
        opening = self._opened
        self._claimed().claim(partial(self._absent, ()))
        options = self._options
        kept = KeptParts(
            opening.keep, batch, f"{self._name}.{opening.owner:08d}", frozenset(options.sides)
        )
        form = Form("json", options.nonfinite) if options.format == "json" else Form("csv")
        return RecordParts(kept, self._encode, form, self._where)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        keep = self._opened.keep
        if not all(r.name.startswith(f"{self._name}.") for r in receipts):
            raise SinkError(
                self._where,
                f"batch {batch} must have been written for this topic",
                "one that another sink has",
                "Continue with the --out of the earlier run, or start from an empty checkpoint.",
            )
        written = [receipt for receipt in receipts if receipt.bytes]
        self._dropped.tell(self._where, batch, receipts)
        fill = partial(self._fill, batch, written)
        self._claimed().publish(batch, fill, partial(self._absent, written))
        for receipt in written:
            keep.delete(batch, receipt.name)

    def close(self) -> None:
        transactions, self._transactions = self._transactions, None
        if transactions is not None:
            transactions.close()

    @property
    def _where(self) -> str:
        return self._address.where

    @property
    def _opened(self) -> Opening:
        assert self._opening is not None, "a sink is opened before it is used"
        return self._opening

    @property
    def _name(self) -> str:
        """The transactional id and the group of the marker; one for each output of a checkpoint."""
        output = f"-{self._opened.output}" if self._opened.output else ""
        return f"tidegate-{self._opened.checkpoint}{output}"

    @property
    def _encode(self) -> Callable[[pa.Table], pa.Table]:
        if self._options.upsert:
            return partial(changes_as_records, key=self._opened.key, values=self._values)
        return partial(rows_as_records, key=self._options.key, values=self._values)

    def _registered(self, schema: pa.Schema) -> Values:
        """The function that writes values. Registers the schema where the format needs one."""
        options = self._options
        if options.registry is None:
            return PLAIN[options.format]
        subject = options.subject or f"{self._address.topic}-value"
        text = avro_schema(schema, self._where)
        try:
            id_ = SchemaRegistry(options.registry).register(subject, text)
        except RunError as error:
            must = f"the schema registry must take the schema of the results as {subject}"
            remedy = f"{error.remedy} Columns that come and go are taken, other types are not."
            raise OptionError(self._where, must, error.got, remedy) from error
        return partial(avro_values, head=header(id_))

    def _claimed(self) -> Transactions:
        """The transactions of this output; makes its topics where they are missing."""
        if self._transactions is None:
            assert self._topics is not None
            assert self._admin is not None
            self._topics.make()
            owner, timeout_ms = self._opened.owner, self._options.timeout_ms
            self._transactions = Transactions(
                self._address, self._admin, self._name, owner, timeout_ms
            )
        return self._transactions

    def _fill(self, batch: BatchId, receipts: Sequence[Receipt], producer: Producer) -> None:
        """Hand all records of a batch to a producer."""
        for receipt in receipts:
            part, until = part_of(receipt), "the topic has it"
            records = read_kept(self._opened.keep, batch, receipt, self._where, until)
            headers = origin(self._name, batch, part.stream)
            at_ms = int(receipt.more[AT_MS])
            send(producer, self._topic(part), records, self._partitions(part), headers, at_ms)

    def _topic(self, part: Part) -> str:
        if not part.side:
            return self._address.topic
        topic = self._options.sides.get(part.side)
        if topic is None:
            raise SinkError(
                self._where,
                f"a batch that is committed has {part.side} tuples, which need their topic",
                f"no {part.side}=TOPIC",
                f"Start with the {part.side}=TOPIC of the run before.",
            )
        return topic

    def _partitions(self, part: Part) -> Iterable[int]:
        """The partition of each row of a part, in the order of the rows; without an end."""
        if not part.side and self._options.partition is not None:
            return repeat(self._options.partition)
        if not part.side and (self._options.key or self._options.upsert):
            return repeat(BY_KEY)
        assert self._topics is not None
        return cycle(range(self._topics.partitions[self._topic(part)]))

    def _check_results(self, opening: Opening, admin: AdminClient) -> None:
        """Refuse a topic to which this run cannot begin or continue to write."""
        assert self._topics is not None
        try:
            marked = marked_topics(admin, self._name)
        except (library(self._where).KafkaException, TimeoutError) as error:
            must = "the brokers must say what was published"
            raise OptionError(self._where, must, reason(error), ANSWERS) from error
        marker = marked.pop(self._address.topic, None)
        newest = -1 if opening.newest is None else opening.newest
        if marked:
            topic = min(marked)
            raise OptionError(
                self._where,
                "a checkpoint must go on with the topic that has its results",
                f"those up to batch {marked[topic].batch} in {topic}",
                "Continue with that topic, or start from an empty checkpoint.",
            )
        if marker is not None and marker.batch > newest:
            raise OptionError(
                self._where,
                f"must have the results of this checkpoint, up to batch {newest}",
                f"those up to batch {marker.batch}: the checkpoint is an older copy",
                "Continue with the checkpoint that wrote them, or start from an empty one with "
                "another topic.",
            )
        if marker is not None and marker.batch < min(opening.results[1:], default=-1):
            raise self._missing(opening.results[0], f"those up to batch {marker.batch}")
        fresh = marker is None and not opening.results
        if fresh and not self._options.append and not self._topics.is_empty():
            raise OptionError(
                self._where,
                "a new run needs a topic without records",
                f"records in {self._address.topic}",
                "Choose another topic, continue with the checkpoint that wrote them, or write "
                "behind them with append=yes after the ? of the URI.",
            )

    def _absent(self, written: Sequence[Receipt]) -> Marker:
        """The marker to assume where the brokers have none: the run is new, or they forgot it.

        Brokers forget a marker that was not written for `offsets.retention.minutes`. Then the
        records themselves are searched for the newest batch. `written` are the receipts of that
        batch where it is about to be published.
        """
        opening = self._opened
        if opening.newest is None or not opening.results:
            return Marker(-1, opening.owner)
        newest = BatchId(opening.newest)
        assert self._topics is not None
        if written:
            topics = {self._topic(part_of(r)): 0 for r in written}
            counts = {topic: self._topics.partitions[topic] for topic in topics}
            at_ms = min(int(r.more[AT_MS]) for r in written)
            if has_batch(self._address, counts, self._name, newest, at_ms):
                return Marker(newest, opening.owner)
        if not self._options.append:
            raise self._missing(opening.results[0], "no record and no marker of them")
        return Marker(newest - 1 if written else newest, opening.owner)

    def _missing(self, last: int, got: str) -> OptionError:
        return OptionError(
            self._where,
            f"must have the results of this checkpoint, up to batch {last}",
            got,
            "Continue with the topic of the earlier run, or start from an empty checkpoint. If "
            "records were deleted on purpose, go on with append=yes after the ? of the URI.",
        )


def _dropped_sides() -> DroppedSides:
    return DroppedSides(_log, "name a topic with {}=TOPIC after the ? of the URI")
