"""Describes a committed batch that runs again, by the manifests before and after it.

A batch runs again if its output was lost. Its first manifest counts until the manifest of the
second run follows it in the log. A crash in between therefore changes nothing: the next start finds
the same loss and begins anew. A batch also runs again if somebody wants to look at it, beside the
checkpoint (`session.rerun`).
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
    """The batch that leads from the state `before` to the state `after` runs again.

    `lost` names the outputs that lost rows before they were published. The batch is written to
    these only; the others keep what they have. Without a `reason` nothing was lost.
    """

    before: Manifest
    after: Manifest
    lost: Collection[str | None]
    reason: LostOutputError | None = None

    @staticmethod
    def of(
        after: Manifest, lost: dict[str | None, LostOutputError], store: Store, first: Manifest
    ) -> Replay:
        """The replay of the newest batch; `first` is the state before batch 0.

        Raises a LostOutputError if the state before the batch is no longer there.
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
    """The error for a batch whose output is lost and that cannot run again."""
    return LostOutputError(
        reason.where,
        reason.requirement,
        f"{reason.got}, and the batch cannot run again: {error.where}: {error.requirement}; "
        f"got {error.got}",
        " Or: ".join(r for r in (error.remedy, reason.remedy) if r),
    )
