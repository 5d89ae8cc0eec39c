"""The seed of a run of the tests: always 0, unless `TIDEGATE_TEST_SEED` says another.

`TIDEGATE_TEST_SEED=N` draws what the run with seed N drew. `TIDEGATE_TEST_SEED=new`, as in
`make fuzz` and `make test-long`, draws a new seed. All processes of a run share it, those of xdist
as well: the first one to import this sets the variable for the others.
"""

from __future__ import annotations

import os
import secrets

VARIABLE = "TIDEGATE_TEST_SEED"
FIXED = VARIABLE not in os.environ
"""Whether every run draws the same examples, so that a red run is red for its change."""

if os.environ.get(VARIABLE) == "new":
    os.environ[VARIABLE] = f"{secrets.randbelow(10**6)}000"

SEED = int(os.environ.get(VARIABLE, "0"))
"""New seeds are a thousand apart, so that two runs rarely draw the same."""


def seeds(count: int) -> range:
    """So many seeds for this run, from 0 on if fixed. A test that loops over none would pass."""
    assert count > 0, f"a test must run at least once; got {count} seeds"
    return range(SEED, SEED + count)
