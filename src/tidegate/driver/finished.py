"""A start on a checkpoint whose run has ended, between its last manifest and input that came since.

A run that reads to the end of its input emits its last windows. What comes afterwards may belong to
those, so it is not read: it is refused, and named.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.errors import CheckpointError

_NAMED = 3
"""How many sources a message names."""


def check_finished(location: str, new: Sequence[str]) -> None:
    """Refuse a finished checkpoint where there are sources that it has not read, or not whole."""
    if not new:
        return
    named = ", ".join(new[:_NAMED])
    more = f" and {len(new) - _NAMED:,} more" if len(new) > _NAMED else ""
    raise CheckpointError(
        location,
        "is finished: its last windows are closed, and nothing can be added to them",
        f"new input in {named}{more}",
        "Run over all of it with another --checkpoint and another --out. To take new input at each "
        "run, begin such a checkpoint with --available-now.",
    )
