"""A committed batch that has to run again, between a start that finds output lost and the loop.

The manifest of the batch stays until the one of the second run takes its place in one step. So a
crash on the way changes nothing: the next start finds the same, and begins anew.
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
    to the others the batch is given as it was.
    """

    before: Manifest
    after: Manifest
    lost: Collection[str | None]
    reason: LostOutputError

    @staticmethod
    def of(
        after: Manifest, lost: dict[str | None, LostOutputError], store: Store, first: Manifest
    ) -> Replay:
        """Find the state before the newest batch; `first` is that before batch 0.

        Raises the LostOutputError where there is none any more.
        """
        reason = next(iter(lost.values()))
        try:
            before = store.manifest(after.batch - 1) if after.batch else first
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
        return Replay(before, after, frozenset(lost), reason)


def hopeless(reason: LostOutputError, error: TidegateError) -> LostOutputError:
    """Say that a batch whose output is lost cannot run again, and why."""
    return LostOutputError(
        reason.where,
        reason.requirement,
        f"{reason.got}, and the batch cannot run again: {error.where}: {error.requirement}; "
        f"got {error.got}",
        " Or: ".join(r for r in (error.remedy, reason.remedy) if r),
    )
