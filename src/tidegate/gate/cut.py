"""The cut of a batch: how many tuples of each source come next in the merge by time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.batch import MAX_US
from tidegate.gate.lateness import Int64s
from tidegate.gate.track import Track

_LOOK_ROWS = 8192
_GROWTH = 8


def cut(tracks: Sequence[Track], limit_rows: int) -> list[int]:
    """How many rows to take of each track, `limit_rows` in all where that many are there now.

    The rows taken are the first ones in the order (key, place of the track, position). Costs the
    event times of about the rows taken; a single source is cut without any search.
    """
    tracks = list(tracks)
    if len(tracks) == 1:
        return [min(len(tracks[0].look_ahead(limit_rows)), limit_rows)]
    look = {
        id(t): min(limit_rows, max(_LOOK_ROWS, limit_rows // max(len(tracks), 1))) for t in tracks
    }
    while True:
        keys = [t.look_ahead(look[id(t)]) for t in tracks]
        horizon, blocking = _horizon(tracks, keys)
        safe = (
            [int(np.searchsorted(k, horizon, "left")) for k in keys]
            if blocking
            else [len(k) for k in keys]
        )
        if sum(safe) >= limit_rows or not blocking:
            return _first_rows([k[:n] for k, n in zip(keys, safe, strict=True)], limit_rows)
        for track in blocking:
            look[id(track)] *= _GROWTH


def _horizon(tracks: Sequence[Track], keys: Sequence[Int64s]) -> tuple[int, list[Track]]:
    """The key below which all rows are known, and the tracks that must be looked into further."""
    open_ends = [
        (int(k[-1]), t) for t, k in zip(tracks, keys, strict=True) if not t.complete() and len(k)
    ]
    horizon = min((key for key, _ in open_ends), default=MAX_US)
    return horizon, [t for key, t in open_ends if key == horizon]


def _first_rows(keys: Sequence[Int64s], limit_rows: int) -> list[int]:
    """Of sorted key runs, how many of each are among the first `limit_rows` of their merge."""
    total = sum(len(k) for k in keys)
    if total <= limit_rows:
        return [len(k) for k in keys]
    low = min(int(k[0]) for k in keys if len(k))
    high = max(int(k[-1]) for k in keys if len(k))
    while low < high:
        middle = (low + high) // 2
        if sum(int(np.searchsorted(k, middle, "right")) for k in keys) >= limit_rows:
            high = middle
        else:
            low = middle + 1
    below = [int(np.searchsorted(k, low, "left")) for k in keys]
    left = limit_rows - sum(below)
    taken = []
    for run, count in zip(keys, below, strict=True):
        ties = min(int(np.searchsorted(run, low, "right")) - count, left)
        left -= ties
        taken.append(count + ties)
    return taken
