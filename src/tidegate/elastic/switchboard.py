"""Keeps requests that come at any time until the next batch takes them.

By subquery the newest request waits, and the next batch takes it. Who asks is told at once whether
it can be, seen from the mapping that it will find: that of the batch at hand. A request for several
subqueries is good for all of them or waits for none, and a batch takes it for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.elastic.request import Request
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping as Owners

Loads = Callable[[str], Sequence[float]]
"""The loads of the buckets of a subquery, by its name."""

Counts = Mapping[str, int]
"""How many instances each subquery has, by its name."""


@dataclass(frozen=True, eq=False)
class WaitingRequest:
    """A request that was found good, and when it came.

    `at` is on the clock that never goes back, `time` is for people. Two are never the same.
    """

    request: Request
    at: float
    time: str


@dataclass(frozen=True)
class Taken:
    """What a batch has of a subquery, or would have: its mapping, and the one before.

    `asked` says who wanted it, if anybody did. Where nothing was to change, both are the same.
    """

    before: Owners
    mapping: Owners
    asked: WaitingRequest | None = None

    @property
    def moved(self) -> int:
        """How many buckets get another owner."""
        return int(np.count_nonzero(self.before.owner_array != self.mapping.owner_array))


class Switchboard:
    """Owned by a loop; `ask` and `waiting` may be called by any thread.

    Grows with the subqueries of a query.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._standing: dict[str, Owners] = {}
        self._waiting: dict[str, WaitingRequest] = {}
        self._batch: int | None = None
        self._taken: dict[str, Taken] = {}
        self.refused: list[tuple[WaitingRequest, OptionError]] = []
        """What the newest batch could not take after all, whole; for the log."""

    def enter(self, standing: Mapping[str, Owners]) -> None:
        """The mappings that a run begins with, by subquery."""
        with self._lock:
            self._standing = dict(standing)

    def ask(
        self,
        asked: WaitingRequest,
        names: Sequence[str],
        loads: Loads,
        allow: Callable[[Counts], None] = lambda counts: None,
    ) -> dict[str, Taken]:
        """Let a request wait for these subqueries, in the place of what waits for them.

        Gives what it would make of them now. What cannot be, for any of them, or is not allowed of
        all of them together, is an OptionError, and nothing has changed then.
        """
        with self._lock:
            change, standing = asked.request.change, self._standing
            made = {
                n: Taken(standing[n], change.after(standing[n], loads(n)), asked) for n in names
            }
            allow(
                {
                    n: made[n].mapping.instances if n in made else self._after(n, loads)
                    for n in standing
                }
            )
            self._waiting |= dict.fromkeys(names, asked)
            return made

    def _after(self, name: str, loads: Loads) -> int:
        """The instances of a subquery after what waits for it."""
        waits, standing = self._waiting.get(name), self._standing[name]
        if waits is None:
            return standing.instances
        return waits.request.change.after(standing, loads(name)).instances

    def waiting(self) -> dict[str, WaitingRequest]:
        """By subquery, in the order of the query, what the next batch will take."""
        with self._lock:
            return {name: self._waiting[name] for name in self._standing if name in self._waiting}

    def begin(
        self,
        batch: int,
        standing: Mapping[str, Owners],
        scheduled: Mapping[str, WaitingRequest],
        loads: Loads,
        within: Callable[[Mapping[str, Taken]], Mapping[str, WaitingRequest]] = lambda taken: {},
    ) -> dict[str, Taken]:
        """What a batch has of each subquery; `standing` are the mappings of the batch before.

        `scheduled` is due with this batch, where nobody asks for something else. `within` gives
        what is to be in the place of that where it is too much. A batch that is tried again has
        what it had: what came in the meantime waits for the next one.
        """
        with self._lock:
            if batch == self._batch:
                return self._taken
            taken = {name: Taken(mapping, mapping) for name, mapping in standing.items()}
            wanted = {**scheduled, **self._waiting}
            self._waiting, self.refused = {}, []
            for asked in dict.fromkeys(wanted.values()):
                names = [name for name in taken if wanted.get(name) is asked]
                try:
                    made = {n: _taken(asked, standing[n], batch, loads(n)) for n in names}
                except OptionError as error:  # the mapping is not the one it was asked about
                    self.refused.append((asked, error))
                else:
                    taken |= made
            for name, fitting in within(taken).items():
                taken[name] = _taken(fitting, standing[name], batch, loads(name))
            return self._begun(batch, taken)

    def repeat(self, batch: int, mappings: Mapping[str, Owners]) -> dict[str, Taken]:
        """A committed batch runs again, with the mappings it had; what waits goes on waiting."""
        with self._lock:
            return self._begun(batch, {n: Taken(m, m) for n, m in mappings.items()})

    def _begun(self, batch: int, taken: dict[str, Taken]) -> dict[str, Taken]:
        self._batch, self._taken = batch, taken
        self._standing = {name: of.mapping for name, of in taken.items()}
        return taken


def _taken(asked: WaitingRequest, before: Owners, batch: int, loads: Sequence[float]) -> Taken:
    mapping = asked.request.change.after(before, loads)
    if batch == 0 and mapping is not before:  # no batch had the mapping before
        mapping = Owners(before.epoch, mapping.instances, mapping.owners)
    return Taken(before, mapping, asked)
