"""Says what a committed batch begins and ends with that runs again.

That is a batch whose output was lost: its manifest counts until the one of the second run comes
after it in the log. So a crash on the way changes nothing: the next start finds the same, and
begins anew. Or it is one that somebody wants to see again, beside the checkpoint (`session.rerun`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from tidegate.errors import LostOutputError, StateError, TidegateError
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Replay:
    """From which state which batch runs again, and for whom.

    `lost` are the outputs, by name, of which something was gone or damaged before it was published;
    to the others the batch is given as it was. Without a `reason` nothing was lost.
    """

    before: Manifest
    after: Manifest
    lost: Collection[str | None]
    reason: LostOutputError | None = None

    @staticmethod
    def of(
        after: Manifest, lost: dict[str | None, LostOutputError], store: Store, first: Manifest
    ) -> Replay:
        """Find the state before the newest batch; `first` is that before batch 0.

        Raises the LostOutputError where there is none any more.
        """
        reason = next(iter(lost.values()))
        try:
            before = _state_before(after, store) if after.batch else first
            store.check_present(before)
        except StateError as error:
            raise hopeless(reason, error) from error
        _log.warning(
            "%s: %s; got %s. Batch %d runs again, from the state before it.",
            reason.where,
            reason.requirement,
            reason.got,
            after.batch,
        )
        return Replay(store.resumed(before), after, frozenset(lost), reason)


def _state_before(after: Manifest, store: Store) -> Manifest:
    before = store.before(after)
    if before is None or before.batch != after.batch - 1:
        where, remedy = store.files.full("manifest"), "Restore it from a copy."
        requirement = f"must have the manifest of batch {after.batch - 1}"
        raise StateError(where, requirement, "no such file", remedy)
    return before


def hopeless(reason: LostOutputError, error: TidegateError) -> LostOutputError:
    """Say that a batch whose output is lost cannot run again, and why."""
    return LostOutputError(
        reason.where,
        reason.requirement,
        f"{reason.got}, and the batch cannot run again: {error.where}: {error.requirement}; "
        f"got {error.got}",
        " Or: ".join(r for r in (error.remedy, reason.remedy) if r),
    )
