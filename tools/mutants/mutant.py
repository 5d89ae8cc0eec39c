"""One mistake on purpose, and the tests that several of them name."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake: `old` in `file` (below src/tidegate) becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: str


DURABLE = "tests/driver/test_durable.py"
DETERMINISM = "tests/property/test_determinism.py"
JOINS = "tests/property/test_join_determinism.py"
JOIN_STATE = "tests/driver/test_join_state.py"
CHANGE = "tests/driver/test_change.py"
CHANGES = "tests/driver/test_change_matrix.py"
GRAPHS = "tests/property/test_graphs.py"
EVERY_STEP = (
    "tests/crash/test_driver_killed.py::test_killed_at_every_step_of_batches_in_turn[aggregate-0]"
)
CUT = "tests/gate/test_lazy_cut.py tests/gate/test_intake.py"
CREW = "tests/execute/resident"
OWNER = "tests/driver/test_fence.py tests/state/test_owner.py"
STORE = "tests/state/test_store.py tests/state/test_crash.py"
EVENTS = "tests/model/test_events.py"
