"""Holds the checkpoint of a run: enters it, commits to it, deletes old files, releases it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from tidegate import schedule
from tidegate.driver.checkpoint.change import QueryLog
from tidegate.driver.checkpoint.recovery import enter
from tidegate.driver.options import RunOptions
from tidegate.driver.outlet import Outlets
from tidegate.errors import FencedError, StateError, TidegateError
from tidegate.plan.physical import Plan
from tidegate.state.epoch_log import shortened
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store
from tidegate.storage.durable import Due

MOST_PENDING = 8
"""The most batches whose deletions may be pending; with more the loop waits for the oldest."""


class Retirement:
    """Deletes the files that each commit made unnecessary, in the order of the commits.

    A thread of its own deletes, after the batch was published; no batch waits for its own
    deletions. If a deletion fails, the next call raises its error once. The state is complete all
    the same, and the next start deletes what is left. Holds at most `MOST_PENDING` manifests.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._line = schedule.current().line("tidegate-retire")
        self._pending: deque[Future[int]] = deque()

    def retire(
        self, previous: Manifest, current: Manifest, replaced: Manifest | None = None
    ) -> None:
        """Queue the deletion of files that neither manifest needs; call after `current` counts."""
        while len(self._pending) >= MOST_PENDING:
            self._pending.popleft().result()
        try:
            done = self._line.submit(self._store.retire, previous, current, replaced)
            self._pending.append(done)
        except RuntimeError:  # the interpreter shuts down and takes no more work: the last batch
            self.wait()
            self._store.retire(previous, current, replaced)

    def check(self) -> None:
        """Raise the StateError of a failed deletion, if any; does not wait."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def wait(self) -> None:
        """Block until all queued deletions are done."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        """Wait for all deletions, then raise the first error."""
        self._line.shutdown(wait=True)
        self.wait()


class Checkpoint:
    """The store of a query, its lock, and the deletions that follow its commits."""

    def __init__(self, store: Store, keep_us: int | None = None) -> None:
        self._store = store
        if keep_us is not None:
            store.keep(keep_us)
        self._lock = Lock(store)
        self.retirement = Retirement(store)
        self.query: QueryLog | None = None
        """How the query of this run differs from earlier ones; None before `enter`."""

    def enter(self, outlets: Outlets, plan: Plan, options: RunOptions, first: Manifest) -> Manifest:
        """Take the checkpoint over (`recovery.enter`); return its newest manifest, or `first`."""
        entered = enter(self._store, self._lock, outlets, plan, options, first)
        self.query = QueryLog(self._store.location, self._store.meta() or {}, plan)
        return entered

    @property
    def alone(self) -> bool:
        """Whether the lock excludes every other run; false where the file system has no locks."""
        return self._lock.held

    def clean(self) -> None:
        """Remove what crashes left; called at a start, after every check has passed."""
        self._store.clean()

    def withdraw(self) -> None:
        """Undo `enter` after the start was refused, so that an earlier run may go on."""
        with suppress(StateError, OSError):  # the refusal is the error to report
            self._store.withdraw()

    def completed(self, previous: Manifest, current: Manifest) -> Manifest:
        """The manifest with the query that made it; its oldest epochs move to a file."""
        assert self.query is not None, "only who has entered commits"
        return shortened(self._store, self.query.signed(previous, current))

    def commit(self, manifest: Manifest, due: Due) -> None:
        """Sync what is due, then write the manifest; a batch that ran again gets a new one."""
        self._store.publish(manifest, due)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Turn any failure into a FencedError if another run has taken the checkpoint over.

        That run deletes files of this one, so the first symptom here may be any missing file.
        """
        try:
            yield
        except (TidegateError, OSError) as error:
            try:
                self._store.check_owner()
            except FencedError as fenced:
                raise fenced from error
            except (TidegateError, OSError):  # the first failure is the error to report
                raise error from None
            raise

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()
