"""Files that no kept state needs any more, deleted beside the batches by a thread of its own."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future

from tidegate import schedule
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

MOST_PENDING = 8
"""So many batches may wait for their deletions; the next one waits with them."""


class Retirement:
    """Deletes what each commit has made superfluous, in the order of the commits.

    A batch is published first and waits for no deletion. What fails is raised once, by the next
    call; the state is whole all the same, and the next start deletes what was left. Holds a few
    manifests at most.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._line = schedule.current().line("tidegate-retire")
        self._pending: deque[Future[int]] = deque()

    def retire(
        self, previous: Manifest, current: Manifest, replaced: Manifest | None = None
    ) -> None:
        """After `current` was published: delete what neither manifest needs, soon."""
        while len(self._pending) >= MOST_PENDING:
            self._pending.popleft().result()
        try:
            done = self._line.submit(self._store.retire, previous, current, replaced)
            self._pending.append(done)
        except RuntimeError:  # Python is ending, and no more is taken: this is the last batch
            self.wait()
            self._store.retire(previous, current, replaced)

    def check(self) -> None:
        """Raise the StateError of a deletion that has failed; does not wait."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def wait(self) -> None:
        """Block until all that was asked for is deleted."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        """Wait for all deletions, then raise where one has failed."""
        self._line.shutdown(wait=True)
        self.wait()
