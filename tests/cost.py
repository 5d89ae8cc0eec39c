"""What work costs, told in a way that does not depend on what else the machine does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class CallCounter:
    """Counts the calls of this thread for as long as it is `sys.setprofile`d."""

    count = 0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")


def calls(work: Callable[[], object]) -> int:
    """How many functions a piece of work calls, of Python and of C.

    Loops over rows in Python show here, loops over arrays in C do not.
    """
    counter = CallCounter()
    sys.setprofile(counter)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counter.count


def times_dearer(one: Callable[[], object], other: Callable[[], object], turns: int = 3) -> float:
    """How many times the CPU time of `other` the work of `one` takes: the least of some turns.

    They take turns, so that what slows the machine down slows both; and they are tried first, so
    that nothing is compiled meanwhile.
    """
    one()
    other()
    pairs = [(_cpu_s(one), _cpu_s(other)) for _ in range(turns)]
    return min(a for a, _ in pairs) / min(b for _, b in pairs)


def _cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
