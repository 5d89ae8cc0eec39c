"""Mistakes in as-of joins."""

from __future__ import annotations

from mutants.mutant import Mutant

_TESTS = "tests/property/test_asof.py"

MUTANTS = (
    Mutant(
        "the newest right tuple of a key is that of the oldest layer",
        "operate/asof/backward.py",
        "last = np.append(ranked[1:] != ranked[:-1], True)[: len(order)]",
        "last = np.append(True, ranked[1:] != ranked[:-1])[: len(order)]",
        "tests/operate/asof/test_state.py",
    ),
    Mutant(
        "of right tuples at one instant the first is taken ahead",
        "operate/kernels/join/asof.py",
        "if known < 0 or right_ts[known] != right_ts[j]:",
        "if True:",
        "tests/operate/kernels/join/test_asof.py",
    ),
    Mutant(
        "left tuples that have had a partner wait on",
        "operate/asof/forward.py",
        "hidden: Mask = ended & (marks != MIN_US)",
        "hidden: Mask = ended & (marks == MIN_US)",
        _TESTS,
    ),
    Mutant(
        "right tuples beyond the tolerance stay in the state",
        "operate/asof/state.py",
        "return segment.tag <= self.needed_us",
        "return False",
        "tests/driver/test_asof_state.py",
    ),
)
