"""A checkpoint in use: entered by one process, committed to batch by batch, then let go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidegate.driver.change import QueryLog
from tidegate.driver.outlet import Outlets
from tidegate.driver.recovery import enter
from tidegate.driver.replay import Replay
from tidegate.driver.retirement import Retirement
from tidegate.durable import Due
from tidegate.errors import FencedError, StateError, TidegateError
from tidegate.plan.physical import Plan
from tidegate.state.epoch_log import shortened
from tidegate.state.lock import Lock
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store


class Checkpoint:
    """The store of a query with its lock, and the deletions that follow commits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock(store)
        self.retirement = Retirement(store)
        self.query: QueryLog | None = None
        """The query of this run beside those before it, once it has entered."""

    def enter(self, outlets: Outlets, plan: Plan, buckets: int, first: Manifest) -> Manifest:
        """The newest manifest, or `first` where there is none yet; see `recovery.enter`."""
        entered = enter(self._store, self._lock, outlets, plan, buckets, first)
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

    def retire(self, previous: Manifest, current: Manifest, replay: Replay | None = None) -> None:
        """After a commit: delete what is superfluous, soon."""
        self.retirement.retire(previous, current, None if replay is None else replay.after)

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
            except (
                TidegateError,
                OSError,
            ):  # then the first failure is the one to tell
                raise error from None
            raise

    def check(self) -> None:
        """Raise the StateError of a deletion that has failed."""
        self.retirement.check()

    def close(self) -> None:
        """Wait for deletions; raises where one has failed."""
        self.retirement.close()

    def release(self) -> None:
        """Let another process have it."""
        self._lock.release()
