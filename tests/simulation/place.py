"""Where the results of a course go: folders of the simulated disk, or a function that is called."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.sink.call import CallSink
from tidegate.testing.simulation.world import World

CALLED = "call"
"""In place of a format of files."""


@dataclass
class Called:
    """What functions were given of an output, by batch: a batch that comes again replaces itself.

    It outlives the processes that call, as a database does. `fails_in` more calls there is one that
    fails.
    """

    world: World
    rows: dict[int, pa.Table] = field(default_factory=dict)
    late: dict[tuple[int, str], pa.Table] = field(default_factory=dict)
    rejected: dict[int, pa.Table] = field(default_factory=dict)
    fails_in: int | None = None
    failed: bool = False

    def sink(self) -> CallSink:
        return CallSink(self._take, late=self._take_late, rejected=self._take_rejected)

    def _take(self, table: pa.Table, batch: int) -> None:
        self._call()
        self.rows[batch] = table
        self.world.schedule.step("called")

    def _take_late(self, table: pa.Table, batch: int, stream: str) -> None:
        self._call()
        self.late[batch, stream] = table

    def _take_rejected(self, table: pa.Table, batch: int) -> None:
        self._call()
        self.rejected[batch] = table

    def _call(self) -> None:
        self.world.schedule.step("call")
        if self.fails_in is not None:
            self.fails_in -= 1
            if self.fails_in < 0:
                self.fails_in, self.failed = None, True
                raise ConnectionError("simulated")
