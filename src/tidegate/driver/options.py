"""The options of a run, beside the query itself; checked before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tidegate.batch import EpochId
from tidegate.driver.batch_limit import FIRST_ROWS, BatchLimit
from tidegate.elastic.budget.budget import NO_BUDGET, QueryBudget
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.handover import AUTO
from tidegate.elastic.policy import Policy
from tidegate.elastic.request import Switch
from tidegate.errors import OptionError, near
from tidegate.memory import ANY, Allowance
from tidegate.plan.table.use import TableLimit
from tidegate.route import mapping as route
from tidegate.source.table import MOST_BYTES
from tidegate.state.signature import SigningKey

T = TypeVar("T")

DEFAULT_BUCKETS = 64
DEFAULT_BATCH_ROWS = 1_000_000
MAX_BUCKETS = 65_536


@dataclass(frozen=True)
class RunOptions:
    """Validated options of one run.

    - `instances` is the user's number; None continues with that of the checkpoint, or starts with
      `default_instances`. `mapping` sets the owner of each bucket at the start instead. `switches`
      maps a batch to the number of instances from that batch on. `subquery_instances` and
      `subquery_switches` are for single subqueries, by name, and take precedence.
    - `memory` is what each process that runs tasks may hold. `batch_rows` are the rows of every
      batch; None is DEFAULT_BATCH_ROWS, or fewer if one row makes many.
    - `trigger_s` is the least time between the starts of two batches. Without it a batch starts
      when the one before is done and there is input. Without input the run looks again after at
      most `poll_s`; a source that knows when input comes wakes it earlier.
    - `policy` decides about instances after every batch, besides the user. `slots` is how many
      instances can run at once; None if only the runner knows. `budget` is this run's part of the
      session's budget.
    - Without `follow` and `available_now` the run reads to the end and finishes every window.
    - `handover` is how buckets reach other instances at a switch (`elastic.handover`). `one_host`
      says that all instances run on the driver's host.
    - `start_empty` lets a changed query have subqueries without state in the checkpoint.
    - `whole_table_bytes` is the largest table that every task holds; a small `memory` lowers it.
    - `keep_us` is how long the states of earlier batches are kept; None keeps none.
    - `sign` is the key that signs each batch, if batches are signed.
    """

    instances: int | None = None
    default_instances: int = 1
    buckets: int = DEFAULT_BUCKETS
    batch_rows: int | None = None
    follow: bool = False
    available_now: bool = False
    switches: Mapping[int, int] = field(default_factory=dict)
    poll_s: float = 0.2
    trigger_s: float | None = None
    subquery_instances: Mapping[str, int] = field(default_factory=dict)
    subquery_switches: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    memory: Allowance = ANY
    handover: str = AUTO
    one_host: bool = True
    policy: Policy = field(default_factory=Fixed)
    slots: int | None = None
    start_empty: bool = False
    whole_table_bytes: int = MOST_BYTES
    mapping: Switch | None = None
    keep_us: int | None = None
    budget: QueryBudget = NO_BUDGET
    sign: SigningKey | None = None

    def __post_init__(self) -> None:
        self._positive("--buckets", self.buckets)
        if self.batch_rows is not None:
            self._positive("--batch-rows", self.batch_rows)
        if self.buckets > MAX_BUCKETS:
            raise OptionError("--buckets", f"must be at most {MAX_BUCKETS}", str(self.buckets))
        if self.trigger_s is not None and self.trigger_s < 0:
            raise OptionError("--trigger", "must not be negative", f"{self.trigger_s:g} seconds")
        if self.trigger_s is not None and self.available_now:
            raise OptionError(
                "--trigger",
                "cannot be used with --available-now",
                "both",
                "Leave --trigger out: what is there is taken at once.",
            )
        if self.follow and self.available_now:
            raise OptionError(
                "--available-now",
                "cannot be used with --follow",
                "both",
                "Keep --available-now to end when all is read, or --follow to wait for more.",
            )
        for asked in (self.instances, *self.subquery_instances.values()):
            if asked is not None:
                self._positive("--instances", asked)
                self._fits("--instances", asked)
        for switches in (self.switches, *self.subquery_switches.values()):
            self._check_switches(switches)
        if self.mapping is not None:
            self._check_mapping(self.mapping)

    def _check_mapping(self, mapping: Switch) -> None:
        if self.instances is not None or self.subquery_instances:
            raise OptionError(
                "--mapping",
                "cannot be used with --instances",
                "both",
                "Leave --instances out: a mapping says how many there are.",
            )
        with read_as("--mapping"):
            mapping.after(route.even(self.buckets, 1), ())

    def _check_switches(self, switches: Mapping[int, int]) -> None:
        for batch, instances in switches.items():
            if batch < 0:
                raise OptionError(
                    "--switch",
                    "the batch must not be negative",
                    f"{batch}={instances}",
                    "Batches are numbered from 0.",
                )
            if instances < 1:
                raise OptionError(
                    "--switch",
                    "the number of instances must be at least 1",
                    f"{batch}={instances}",
                )
            self._fits("--switch", instances)

    @staticmethod
    def _positive(option: str, value: int) -> None:
        if value < 1:
            raise OptionError(option, "must be at least 1", str(value))

    def _fits(self, option: str, instances: int) -> None:
        if instances > self.buckets:
            raise OptionError(
                option,
                f"must not exceed the number of buckets ({self.buckets})",
                str(instances),
                "Ask for fewer instances or more --buckets.",
            )

    def instances_at(self, batch: int, subquery: str) -> int | None:
        """The instances that options ask for a subquery at a batch; None if none do."""
        due = self.due_at(batch, subquery)
        return None if due is None else due[1]

    def due_at(
        self, batch: int, subquery: str, since: int | None = None, answered: bool = False
    ) -> tuple[str, int] | None:
        """The option that applies to a subquery at a batch, and its number of instances.

        `since` is the batch at which a user or a policy switched; only switches of later batches
        apply after it. With `answered` that was in this run, and `instances` no longer applies.
        """
        own = self.subquery_switches.get(subquery, {})
        past = [b for b in (*self.switches, *own) if b <= batch]
        if past:
            newest = max(past)
            counts = since is None or newest > since
            return ("--switch", {**self.switches, **own}[newest]) if counts else None
        asked = self.subquery_instances.get(subquery, self.instances)
        return None if asked is None or answered else ("--instances", asked)

    def called(self, names: Mapping[str, str]) -> RunOptions:
        """The options with keys of subqueries replaced by their names; `names` maps key to name."""
        return replace(
            self,
            subquery_instances=_called("--instances", self.subquery_instances, names),
            subquery_switches=_called("--switch", self.subquery_switches, names),
        )

    def check_subqueries(self, known: Sequence[str], shared: bool = False) -> None:
        """Refuse names of subqueries that the query does not have.

        With `shared`, all subqueries run on the same instances, so no name is allowed.
        """
        for option, named in (
            ("--instances", self.subquery_instances),
            ("--switch", self.subquery_switches),
        ):
            for name in named:
                if shared:
                    raise one_number(option, name)
                if name not in known:
                    raise OptionError(
                        option, "must name a subquery of the query", name, near(name, known)
                    )

    def limit_of(self, multiplies: bool) -> BatchLimit:
        """The limit of rows per batch; `multiplies`: one row may become very many."""
        if self.batch_rows is not None:
            return BatchLimit(self.batch_rows)
        first = FIRST_ROWS if multiplies else None
        return BatchLimit(DEFAULT_BATCH_ROWS, by_output=True, first_rows=first)

    @property
    def table_limit(self) -> TableLimit:
        """How large tables may be. With a memory limit, tables that do not fit into caches are
        read by key."""
        most, cached = self.whole_table_bytes, self.memory.cache_bytes
        return TableLimit(most if cached is None else min(most, cached), most)

    def first_mapping(self, subquery: str | None = None) -> route.Mapping:
        """The first mapping of a subquery in a new checkpoint; without a name, of any."""
        due = None if subquery is None else self.due_at(0, subquery)
        if due is not None:
            return route.even(self.buckets, due[1])
        if self.mapping is not None:
            return route.Mapping(EpochId(0), self.mapping.instances, self.mapping.owners)
        return route.even(self.buckets, self.first_instances)

    @property
    def first_instances(self) -> int:
        """The number of instances a query starts with by default."""
        return min(self.default_instances, self.buckets)


@contextmanager
def read_as(option: str) -> Iterator[None]:
    """Make errors about a mapping name the option that gave it."""
    try:
        yield
    except OptionError as error:
        raise OptionError(option, error.requirement, error.got, error.remedy) from None


def _called(option: str, asked: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, what in asked.items():
        now = names.get(name, name)
        if now in found:
            other = next(n for n in asked if n != name and names.get(n, n) == now)
            raise OptionError(
                option,
                "a subquery can be named once",
                f"{other} and {name}, which are the same",
                f"Leave out {name if name != now else other}.",
            )
        found[now] = what
    return found


def one_number(where: str, name: str) -> OptionError:
    """The error for naming one subquery if all run on the same instances."""
    return OptionError(
        where,
        "the strategy query-cloud has one number of instances for the whole query",
        f"one for {name}",
        "Leave the subquery out, or use another --strategy.",
    )
