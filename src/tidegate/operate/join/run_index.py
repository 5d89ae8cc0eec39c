"""What searching stored tuples needs of them, computed once and kept while they are in use.

It costs a pass over the tuples, and they are searched by every batch while their window is open.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

KEPT_BYTES = 512 * 2**20
"""How much of this a process keeps."""


@dataclass
class Searched:
    """The index of a run, and the values of its other tests as single floats.

    These are relative to the least value of the run. Subtracting one number and rounding keep
    order, so what passes a test in double floats still does; a pair more may.
    """

    key: Floats | None
    values: list[Singles]
    bases: list[float]
    oldest: int
    _in_order: Ints | None = field(default=None)

    @staticmethod
    def of(key: Floats | None, values: Sequence[Floats], coordinate: Ints) -> Searched:
        bases, narrow = [], []
        for value in values:
            finite = value[np.isfinite(value)]
            base = float(finite.min()) if len(finite) else 0.0
            bases.append(base)
            narrow.append(_single(value, base))
        return Searched(key, narrow, bases, int(coordinate.min()))

    @property
    def nbytes(self) -> int:
        arrays = [a for a in (self.key, self._in_order, *self.values) if a is not None]
        return sum(int(a.nbytes) for a in arrays)

    def narrowed(
        self, bounds: Sequence[tuple[Floats, Floats]]
    ) -> tuple[list[Singles], list[Singles]]:
        """Lows and highs as the values are."""
        both = list(zip(bounds, self.bases, strict=True))
        return [_single(b[0], base) for b, base in both], [_single(b[1], base) for b, base in both]

    def in_order(self, coordinate: Ints) -> Ints:
        """The run's coordinates, ascending."""
        if self._in_order is None:
            self._in_order = np.sort(coordinate)
        return self._in_order


def _single(values: Floats, base: float) -> Singles:
    with np.errstate(over="ignore", invalid="ignore"):
        return (values - base).astype(np.float32)


_kept: OrderedDict[Hashable, Searched] = OrderedDict()
_lock = threading.Lock()


def known(token: Hashable | None, compute: Callable[[], Searched]) -> Searched:
    """What is kept under a token, or computed and kept; nothing is kept under None."""
    if token is None:
        return compute()
    with _lock:
        found = _kept.get(token)
        if found is not None:
            _kept.move_to_end(token)
            return found
    made = compute()
    with _lock:
        _kept[token] = made
        held = sum(s.nbytes for s in _kept.values())
        while held > KEPT_BYTES and len(_kept) > 1:
            held -= _kept.popitem(last=False)[1].nbytes
    return made
