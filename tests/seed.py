"""The seed of a run of the tests: fixed in CI, new each time elsewhere, and printed by pytest.

`TIDEGATE_TEST_SEED=N` draws again what the run with seed N drew. The tests of a run share it, in
whichever process of xdist they are: the first process to import this sets the variable for them.
"""

from __future__ import annotations

import os
import secrets

VARIABLE = "TIDEGATE_TEST_SEED"
FIXED = bool(os.environ.get("CI")) and VARIABLE not in os.environ
"""Whether the examples are the same on every run, so that a red build is red for its change."""

SEED = 0 if FIXED else int(os.environ.setdefault(VARIABLE, f"{secrets.randbelow(10**6)}000"))
"""Runs are a thousand apart, so that two rarely draw the same."""


def seeds(count: int) -> range:
    """So many seeds for this run, from 0 on in CI. A test that loops over none would pass."""
    assert count > 0, f"a test must run at least once; got {count} seeds"
    return range(SEED, SEED + count)
