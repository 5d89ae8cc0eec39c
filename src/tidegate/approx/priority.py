"""The priority of a tuple: chance that is the same in every run.

A priority is a word of 64 bits, made of the seed of a query, the source of the tuple and its number
there, and of nothing else. So a sample of the lowest ones does not depend on how a stream was cut,
split or merged. Words of different tuples are as good as independent, and those of one source are
all different: for a source the function is one to one. Two tuples of different sources have the
same word with a probability of 2**-64.

What is computed here is part of what a checkpoint means: samples in it were taken with it.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from tidegate.approx.array import Ints, Words


def seed_of(*parts: object) -> int:
    """A seed of 64 bits from what tells one query, or one use of it, from another."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def priorities(seed: int, src: Ints, seq: Ints) -> Words:
    """The priorities of tuples from their sources and their numbers there; O(tuples), compiled.

    Fastest where the tuples of a source stand together.
    """
    if len(src) == 0:
        return np.empty(0, np.uint64)
    from tidegate.approx.priority_loop import priorities_loop

    words: Words = priorities_loop()(np.uint64(seed), _fixed(src), _fixed(seq))
    return words


def _fixed(column: Ints) -> Ints:
    return np.ascontiguousarray(column, np.int64)
