"""The interface of operators: the one seam between plans and the tasks that run them.

A plan holds an `Operator` for each subquery. The map side calls `deal` on the tuples of a split,
the instance side calls `run` on what was dealt to it; the driver asks how its state is kept, how
the rows of its instances become one sequence, and how to describe it. Nothing outside a folder of
`operate/` asks which operator it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US
from tidegate.collect.order import OutputOrder
from tidegate.expression.tree import Expr
from tidegate.model.operation import Operation
from tidegate.operate.bucket_work import BucketWork
from tidegate.operate.change import OperatorChange
from tidegate.operate.figures import PaneFigures, ShownFigure, ToldWindow, Values, WindowFigures
from tidegate.operate.keeper import Keeper
from tidegate.operate.kept import Kept
from tidegate.operate.kernels.group import stable_order
from tidegate.operate.port import Port
from tidegate.operate.table_join.held import HeldTables
from tidegate.route.former import Position
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import EVERY_INSTANCE, Partitioner, Router
from tidegate.route.reach import Reach
from tidegate.spans import Spans
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment import Segment
from tidegate.state.store import Store

OUT = "out_"
"""How the names of a prefix's outputs begin beside ts, src and seq, which they might equal."""


@dataclass(frozen=True)
class BatchFacts:
    """What is known of a batch before its tuples are read.

    All of them lie in [low_us, high_us], and those that count in [previous_us, frontier_us).
    `counts` are the sums over earlier batches of what the operator counts (`Traits.counted`). No
    tuple of any source up to this batch is after `newest_us`.
    """

    previous_us: int
    frontier_us: int
    low_us: int
    high_us: int
    instances: int
    counts: Mapping[str, int] = field(default_factory=dict)
    newest_us: int = MIN_US


@dataclass(frozen=True)
class MapWork:
    """One split of one input, on the map side; `start` is the position of its first tuple.

    `filtered` says that tuples of it are missing, so that positions cannot be counted on. No tuple
    has a time before `previous_us`. `state` has the segments of the operator by what they hold, in
    the store that `opened` gives. `upstream` names what the tuples come from, the same in every
    batch, and `kept` is what its map task of the batch before has left in memory; None where it has
    several splits. What is added to `told` comes to the driver, and `shed` counts tuples that the
    operator drops on purpose.
    """

    batch: int
    input: int
    source: str
    start: int
    filtered: bool
    mapping: BucketMapping
    spans: Spans
    previous_us: int
    state: Mapping[str, tuple[Segment, ...]]
    opened: Callable[[], Store]
    upstream: str
    kept: Kept | None = None
    told: list[PaneFigures] = field(default_factory=list)
    shed: list[int] = field(default_factory=list)

    def router(self, partitioner: Partitioner) -> Router:
        return Router(partitioner, self.mapping, self.source, self.start, self.filtered)

    def by_bucket(self, table: pa.Table) -> list[Share]:
        """Rows with a column `bucket`, divided among the owners of their buckets."""
        bucket: npt.NDArray[np.int32] = table.column("bucket").to_numpy()
        return self.by_owner(table, self.mapping.owner_array[bucket])

    def by_hash(
        self, partitioner: Partitioner, table: pa.Table, names: Sequence[str]
    ) -> list[Share]:
        """Rows divided by these columns, among the owners of the buckets that they are given."""
        values = [table.column(name).combine_chunks() for name in names]
        bucket = self.router(partitioner).buckets(values, table.num_rows)
        return self.by_bucket(table.append_column("bucket", pa.array(bucket)))

    def by_owner(self, table: pa.Table, owners: npt.NDArray[np.signedinteger[Any]]) -> list[Share]:
        """Rows divided among the instances that these numbers name."""
        if self.mapping.running == 1:
            return [Share(0, table)]
        parts = enumerate(divided(table, owners, self.mapping.running))
        return [Share(i, part) for i, part in parts if part.num_rows]


@dataclass(frozen=True)
class Migration:
    """Where an operator can be handed over with no state moved: UniMiCo's migration timestamp.

    What is stored of times below `until_us` stays with who has it, and nothing is stored yet of
    times from it on. When the frontier is at `over_us`, no window has any of it; where windows
    count tuples, when the `positions` are reached too.
    """

    until_us: int
    over_us: int
    positions: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Share:
    """Rows of one split for one instance, or for EVERY_INSTANCE.

    `channel` says what they are: "" for the tuples of the input, or what was made of them, and a
    name of the operator's own for what goes beside them.
    """

    instance: int
    rows: pa.Table
    channel: str = ""

    @staticmethod
    def for_all(rows: pa.Table, channel: str = "") -> Share:
        return Share(EVERY_INSTANCE, rows, channel)


@dataclass(frozen=True)
class Arrival:
    """What one split of an input has for an instance, on the channel of its share."""

    input: int
    rows: pa.Table
    channel: str = ""


@dataclass(frozen=True)
class InstanceWork:
    """One instance's part of a batch.

    `state` has the segments of the operator by what they hold. Segments that it writes have names
    that begin with `name`, which stands for all that makes their bytes. `query` tells the state of
    one query from that of another that was at the same place before. `kept` is what it has in
    memory of the batch before. `run` is the number of the run in the names of files. `tables` has
    those that the operator looks into.
    """

    instance: int
    batch: int
    name: str
    query: str
    mapping: BucketMapping
    previous_us: int
    frontier_us: int
    state: Mapping[str, tuple[Segment, ...]]
    store: Store
    ports: tuple[Port, ...]
    spans: Spans
    kept: Kept
    run: int | None = None
    tables: HeldTables | None = None


@dataclass(frozen=True)
class Result:
    """What an instance made of a batch: rows by port, each in order, with what a merge needs.

    `segments` are those it wrote, by what they hold; `tuples` is its load. `bucket_work` says how
    its work was divided among the buckets, see there; None where it was not by bucket. `windows`
    are figures of those that it closed, for `Operator.window_figures`; the newest few count.
    `changes` are those that tasks have made by themselves, each told by one instance.
    """

    rows: tuple[pa.Table, ...]
    tuples: int
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    bucket_work: BucketWork | None = None
    windows: tuple[WindowFigures, ...] = ()
    changes: tuple[OperatorChange, ...] = ()


@dataclass(frozen=True)
class Traits:
    """What the engine has to know of an operator before it runs; the defaults fit most.

    `waits`: tuples wait in the gate until they are ready; else they are dealt as they arrive, and
    the operator keeps them apart until the frontier has passed them.
    `multiplies`: a tuple may give as many rows as there are others, nobody knows before it has.
    `evaluates_ports`: instances evaluate what ports put out; else the prefixes have done it.
    `limit`: the most rows that it will ever put out; None where there is no such number.
    `map_steps`: what map tasks do after reading and filtering, in words.
    `expressions`: what it evaluates itself, beside what its ports do.
    `warnings`: what a user should know before it runs.
    `counted`: counts of its instances that the manifest sums up for the operator, for `for_batch`
    and, by the name of a part of the state, for its keeper.
    `deals_ahead`: `deal` needs nothing that the batch before leaves: no `kept`, of `for_batch` no
    counts, and of `state` the parts `dealt_by`, which may be as they were one batch earlier. So map
    tasks may run before the batch before is done.
    `tables`: names of the tables that its instances look into.
    `levels`: figures of panes that say how much there is, not how much has come: of several
    batches, and of the panes of a window, the largest counts. Others are added up.
    `grouped`: columns that it does nothing with but group by; texts in them may be codes.
    """

    waits: bool = True
    multiplies: bool = False
    evaluates_ports: bool = True
    limit: int | None = None
    map_steps: tuple[str, ...] = ("project",)
    expressions: tuple[Expr, ...] = ()
    warnings: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    deals_ahead: bool = False
    dealt_by: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


def divided(
    table: pa.Table, owners: npt.NDArray[np.signedinteger[Any]], count: int
) -> list[pa.Table]:
    """The rows of each owner, below `count`, in their given order; parts of one table.

    Rows are copied once, whatever the count, and not at all where owners ascend already.
    """
    if (owners[1:] < owners[:-1]).any():
        order = stable_order(owners.astype(np.int64), count)
        table = table.combine_chunks().take(pa.array(order))
    sizes = np.bincount(owners, minlength=count).tolist()
    return [table.slice(end - size, size) for end, size in zip(accumulate(sizes), sizes)]


def owned(what: str, mapping: BucketMapping, instance: int) -> BucketSet:
    """The buckets that an instance owns, whatever part of the state is asked for."""
    return BucketSet.where(mapping.owner_array == instance)


def _unbound(
    frontier_us: int, state: Mapping[str, Sequence[Segment]], counts: Mapping[str, int]
) -> Migration | None:
    return None


@dataclass(frozen=True)
class OperatorState:
    """How the state of an operator is kept, and how it comes to other instances.

    `keepers` has a keeper for each part of the state, by what segments hold.
    `reach`: how far back its windows reach, so that former owners of buckets may finish what they
    have begun: the operator then sees to the `formers` of a mapping. A text says why new owners
    cannot begin without the state.
    `migration`: where buckets may change hands now with no state moved, given the frontier, the
    segments, and what the manifest has summed up of what the operator counts; None where nothing is
    stored. Asked only where there is a reach.
    `reads`: the buckets of a part of the state that an instance reads, most often those it owns.
    Asked where no former owner has anything to finish.
    """

    keepers: Mapping[str, Keeper] = field(default_factory=dict)
    reach: Reach | str = "its state is bound by no window"
    migration: Callable[
        [int, Mapping[str, Sequence[Segment]], Mapping[str, int]], Migration | None
    ] = _unbound
    reads: Callable[[str, BucketMapping, int], BucketSet] = owned


class Operator(Protocol):
    """A frozen, picklable dataclass; the same for every batch but for `for_batch`.

    Derive from it: what most operators do not need has a default.
    """

    kind: ClassVar[str]
    """What subqueries with it are called."""

    @property
    def traits(self) -> Traits:
        """What the engine has to know of it; asked a few times in each batch."""
        return _PLAIN

    @property
    def state(self) -> OperatorState:
        """How its state is kept; without keepers it has none."""
        return _STATELESS

    @property
    def partitioner(self) -> Partitioner:
        """Who chooses the buckets of its tuples."""

    @property
    def order(self) -> OutputOrder:
        """How the rows of its instances become one sequence."""

    @property
    def operation(self) -> Operation:
        """What a model of its work has to know."""
        return Operation(self.kind)

    def for_batch(self, facts: BatchFacts) -> Operator:
        """The operator as tasks of one batch see it."""
        return self

    def across_hosts(self) -> Operator:
        """The operator where instances do not share memory, and what is sent costs."""
        return self

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        """Divide a split among the instances; never called without tuples.

        `tuples` has ts, src and seq, then the outputs of the prefix under names that begin with
        OUT. The shares of all splits of a batch reach `run` in the order of the splits.
        """

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Operate on what arrived and on the state; called also where nothing arrived."""

    def window_figures(self, told: ToldWindow) -> Values:
        """The figures of a window, from what its instances and map tasks have told of it.

        Called on the driver, once for each window that was told of, when it is committed. Where an
        operator says nothing else, they are sums.
        """
        return told.totals()

    @property
    def shown_figures(self) -> tuple[ShownFigure, ...]:
        """Those that people are shown, in their order; summary and status as JSON have all."""
        return ()

    def title(self) -> str:
        """What it does, in one line."""

    def details(self, texts: Mapping[str, str]) -> list[str]:
        """How it does it, line by line; `texts` are the prefix's outputs as the query says them."""
        return []


_PLAIN, _STATELESS = Traits(), OperatorState()


def plain_names(tuples: pa.Table) -> pa.Table:
    """Dealt tuples under the names that the operator gave its inputs, without OUT."""
    return tuples.rename_columns([n.removeprefix(OUT) for n in tuples.column_names])


def by_channel(arrived: Sequence[Arrival]) -> dict[str, list[pa.Table]]:
    """What arrived on each channel, in the order of the splits; "" is there in any case."""
    found: dict[str, list[pa.Table]] = {"": []}
    for arrival in arrived:
        found.setdefault(arrival.channel, []).append(arrival.rows)
    return found


def together(arrived: Sequence[Arrival]) -> pa.Table | None:
    """All that arrived, in the order of the splits; None where there is nothing."""
    return pa.concat_tables([a.rows for a in arrived]).combine_chunks() if arrived else None
