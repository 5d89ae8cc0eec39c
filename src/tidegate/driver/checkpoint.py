"""Holds the checkpoint of a run: entered by one process, committed to, cleaned up, released."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from tidegate import schedule
from tidegate.driver.change import QueryLog
from tidegate.driver.options import RunOptions
from tidegate.driver.outlet import Outlets
from tidegate.driver.recovery import enter
from tidegate.durable import Due
from tidegate.errors import FencedError, StateError, TidegateError
from tidegate.plan.physical import Plan
from tidegate.state.epoch_log import shortened
from tidegate.state.lock import Lock
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


class Checkpoint:
    """The store of a query with its lock, and the deletions that follow commits."""

    def __init__(self, store: Store, keep_us: int | None = None) -> None:
        self._store = store
        if keep_us is not None:
            store.keep(keep_us)
        self._lock = Lock(store)
        self.retirement = Retirement(store)
        self.query: QueryLog | None = None
        """The query of this run beside those before it, once it has entered."""

    def enter(self, outlets: Outlets, plan: Plan, options: RunOptions, first: Manifest) -> Manifest:
        """The newest manifest, or `first` where there is none yet; see `recovery.enter`."""
        entered = enter(self._store, self._lock, outlets, plan, options, first)
        self.query = QueryLog(self._store.location, self._store.meta() or {}, plan)
        return entered

    @property
    def alone(self) -> bool:
        """Whether no other run can be at work in it."""
        return self._lock.held

    def clean(self) -> None:
        """When all is ready to start: remove what crashes left."""
        self._store.clean()

    def withdraw(self) -> None:
        """When a start is refused: leave it as it was."""
        with suppress(StateError, OSError):  # the refusal is the one to tell
            self._store.withdraw()

    def completed(self, previous: Manifest, current: Manifest) -> Manifest:
        """A manifest with the query that made it, and its oldest epochs in a file."""
        assert self.query is not None, "only who has entered commits"
        return shortened(self._store, self.query.signed(previous, current))

    def commit(self, manifest: Manifest, due: Due) -> None:
        """Make a batch count, after what is due; one that ran again counts as it is now."""
        self._store.publish(manifest, due)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Where something fails because another run has taken the checkpoint over, say that.

        Such a run removes what this one has left, so that files are missing here and there.
        """
        try:
            yield
        except (TidegateError, OSError) as error:
            try:
                self._store.check_owner()
            except FencedError as fenced:
                raise fenced from error
            except (TidegateError, OSError):  # then the first failure is the one to tell
                raise error from None
            raise

    def release(self) -> None:
        """Let another process have it."""
        self._lock.release()
