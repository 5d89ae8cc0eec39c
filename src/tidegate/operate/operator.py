"""The interface of operators: the one seam between plans and the tasks that run them.

A plan holds an `Operator` for each subquery. A map task calls `deal` on the tuples of its split. An
instance calls `run` on what was dealt to it. The driver asks how the state is kept, how the rows of
the instances become one sequence, and how to describe the operator. Only the folders of `operate/`
know which operator they have.
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
from tidegate.operate.instance_cache import Kept
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.group import stable_order
from tidegate.operate.port import Port
from tidegate.operate.table_join.table_versions import HeldTables
from tidegate.route.former_owner import Position
from tidegate.route.mapping import Mapping as BucketMapping
from tidegate.route.partitioner import EVERY_INSTANCE, Partitioner, Router
from tidegate.route.reach import Reach
from tidegate.spans import Spans
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.segment import Segment
from tidegate.state.store import Store

OUT = "out_"
"""The outputs of a prefix have names that begin so, so that none of them is ts, src or seq."""


@dataclass(frozen=True)
class BatchFacts:
    """What the driver knows of a batch before its tuples are read.

    The times of its tuples lie in [low_us, high_us]; those that are ready lie in
    [previous_us, frontier_us). `counts` are the operator's own counts (`Traits.counted`), summed
    over earlier batches. No source has had a tuple after `newest_us`, this batch included.
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
    """One split of one input, on the map side.

    `start` is the position of its first tuple. Where `filtered` is true some tuples were left out,
    so positions do not follow each other. No tuple has a time before `previous_us`. `state` has the
    operator's segments by what they hold; `opened` opens their store. `upstream` names the source
    of the tuples, the same in every batch. `kept` is what the map task of this source left in
    memory in the batch before; it is None where the source has several splits. The operator adds
    figures for the driver to `told`, and the number of tuples that it drops on purpose to `shed`.
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
        """Divide rows with a column `bucket` among the owners of the buckets."""
        bucket: npt.NDArray[np.int32] = table.column("bucket").to_numpy()
        return self.by_owner(table, self.mapping.owner_array[bucket])

    def by_hash(
        self, partitioner: Partitioner, table: pa.Table, names: Sequence[str]
    ) -> list[Share]:
        """Let a partitioner give rows their buckets by these columns, then divide the rows."""
        values = [table.column(name).combine_chunks() for name in names]
        bucket = self.router(partitioner).buckets(values, table.num_rows)
        return self.by_bucket(table.append_column("bucket", pa.array(bucket)))

    def by_owner(self, table: pa.Table, owners: npt.NDArray[np.signedinteger[Any]]) -> list[Share]:
        """Divide rows among instances: `owners` has the number of one for each row."""
        if self.mapping.running == 1:
            return [Share(0, table)]
        parts = enumerate(divided(table, owners, self.mapping.running))
        return [Share(i, part) for i, part in parts if part.num_rows]


@dataclass(frozen=True)
class Migration:
    """The times of a switch that moves no state: UniMiCo's migration timestamp.

    The former owner keeps what is stored of times below `until_us`; nothing is stored yet of later
    times. When the frontier reaches `over_us`, no window needs that state any more. Where windows
    count tuples, the `positions` must be reached too.
    """

    until_us: int
    over_us: int
    positions: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Share:
    """Rows of one split for one instance, or for EVERY_INSTANCE.

    `channel` is "" for the tuples of the input, or what was made of them. What an operator sends
    beside them goes on a channel with a name of its own.
    """

    instance: int
    rows: pa.Table
    channel: str = ""

    @staticmethod
    def for_all(rows: pa.Table, channel: str = "") -> Share:
        return Share(EVERY_INSTANCE, rows, channel)


@dataclass(frozen=True)
class Arrival:
    """A share of one split, as an instance receives it."""

    input: int
    rows: pa.Table
    channel: str = ""


@dataclass(frozen=True)
class InstanceWork:
    """One instance's part of a batch.

    `state` has the operator's segments by what they hold. The segments that the instance writes
    must have names that begin with `name`: it is made of all that decides their bytes. `query`
    tells this query from another one that was at the same place before. `kept` is what the instance
    left in memory in the batch before. `run` is the number of this run in the names of files.
    `tables` has the tables that the operator looks into.
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
    """What an instance made of a batch.

    `rows` has one table for each port, in order, with the hidden columns that a merge needs.
    `tuples` is how many tuples, or partials, the instance received. `segments` are those that it
    wrote, by what they hold. `bucket_work` is its work by bucket (`bucket_work.py`); None where the
    operator does not work bucket by bucket. `windows` has figures of the windows that it closed,
    for `Operator.window_figures`; the driver uses the newest few. `changes` are decisions that
    tasks made on their own; exactly one instance reports each.
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

    `waits`: the gate holds tuples until they are ready. Otherwise they are dealt as they arrive,
    and the operator keeps them apart until the frontier has passed them.
    `multiplies`: one tuple may give any number of rows, as a join does.
    `evaluates_ports`: the instances evaluate the outputs of ports. Otherwise the prefixes did.
    `limit`: the most rows that it will ever put out; None where there is no such number.
    `map_steps`: what map tasks do after reading and filtering, in words.
    `expressions`: what it evaluates itself, beside what its ports evaluate.
    `warnings`: what a user should know before it runs.
    `counted`: names of counts that the manifest sums over all batches. The operator gets the sums
    in `for_batch`; the keeper of the part of the state with that name gets them too.
    `deals_ahead`: map tasks may run before the batch before is done. So `deal` must not use `kept`
    nor the counts of `for_batch`, and of `state` only the parts `dealt_by`, as they may have been
    one batch earlier.
    `tables`: names of the tables that its instances look into.
    `levels`: figures of panes that say how much there is, not how much has come. Of several batches
    or panes the largest counts; other figures are added up.
    `grouped`: columns that it only groups by, so that texts in them may be replaced by codes.
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
    """Give one table for each owner from 0 up to below `count`, its rows in their given order.

    Rows are copied once, whatever the count, and not at all where `owners` ascends.
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
    `reach` is how far back windows reach. Then a switch may be by window recreation: the former
    owners of buckets finish the windows that they began, and the operator handles the `formers` of
    a mapping. A text instead says why new owners cannot begin without the state.
    `migration` gives the times of such a switch, from the frontier, the segments and the summed
    counts; None where nothing is stored. It is called only where there is a reach.
    `reads` gives the buckets of a part of the state that an instance reads, most often those that
    it owns. It is called where no former owner has windows to finish.
    """

    keepers: Mapping[str, Keeper] = field(default_factory=dict)
    reach: Reach | str = "its state is bound by no window"
    migration: Callable[
        [int, Mapping[str, Sequence[Segment]], Mapping[str, int]], Migration | None
    ] = _unbound
    reads: Callable[[str, BucketMapping, int], BucketSet] = owned


class Operator(Protocol):
    """A frozen, picklable dataclass, the same in every batch except for what `for_batch` fills in.

    Derive from it: what most operators do not need has a default.
    """

    kind: ClassVar[str]
    """The name of such subqueries in plans and figures."""

    @property
    def traits(self) -> Traits:
        """What the engine has to know of it; read a few times in each batch."""
        return _PLAIN

    @property
    def state(self) -> OperatorState:
        """How its state is kept; an operator without keepers has no state."""
        return _STATELESS

    @property
    def partitioner(self) -> Partitioner:
        """Chooses the buckets of its tuples."""

    @property
    def order(self) -> OutputOrder:
        """How the rows of its instances become one sequence."""

    @property
    def operation(self) -> Operation:
        """What the model of a query's cost has to know of it."""
        return Operation(self.kind)

    @property
    def splitting(self) -> Operator | None:
        """The operator while a policy lets keys be split; None where policies have no say."""
        return None

    def for_batch(self, facts: BatchFacts) -> Operator:
        """The operator as tasks of one batch see it."""
        return self

    def across_hosts(self) -> Operator:
        """The operator to use where instances are on several hosts, so that sending rows costs."""
        return self

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        """Divide a split among the instances; called only where the split has tuples.

        `tuples` has ts, src and seq, then the outputs of the prefix under names that begin with
        OUT. The shares of all splits of a batch reach `run` in the order of the splits.
        """

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Process what arrived, and the state; called also where nothing arrived."""

    def window_figures(self, told: ToldWindow) -> Values:
        """The figures of a window, from what its instances and map tasks reported.

        The driver calls it once for each window with figures, when the window is committed. By
        default the figures are the sums over the instances.
        """
        return told.totals()

    @property
    def shown_figures(self) -> tuple[ShownFigure, ...]:
        """The figures that people see, in this order; the JSON of summary and status has all."""
        return ()

    def title(self) -> str:
        """What it does, in one line."""

    def details(self, texts: Mapping[str, str]) -> list[str]:
        """How it works, line by line; `texts` has the prefix's outputs as the query writes them."""
        return []


_PLAIN, _STATELESS = Traits(), OperatorState()


def plain_names(tuples: pa.Table) -> pa.Table:
    """Remove OUT from the names of the columns that `deal` is given."""
    return tuples.rename_columns([n.removeprefix(OUT) for n in tuples.column_names])


def by_channel(arrived: Sequence[Arrival]) -> dict[str, list[pa.Table]]:
    """The tables of each channel, in the order of the splits; the channel "" is always there."""
    found: dict[str, list[pa.Table]] = {"": []}
    for arrival in arrived:
        found.setdefault(arrival.channel, []).append(arrival.rows)
    return found


def together(arrived: Sequence[Arrival]) -> pa.Table | None:
    """All that arrived as one table, in the order of the splits; None where nothing arrived."""
    return pa.concat_tables([a.rows for a in arrived]).combine_chunks() if arrived else None
