"""Mistakes in the controller of the model, and in what it is fed with."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "who goes on by hand keeps what one that has joined waits for",
        "elastic/budget/claim.py",
        "        return min(following, room)",
        "        return following",
        "tests/elastic/budget/test_ledger.py",
    ),
    Mutant(
        "a policy may want no instance at all",
        "driver/manager.py",
        "type(wanted) is not int or wanted < 1",
        "type(wanted) is not int",
        "tests/session/test_budget.py",
    ),
    Mutant(
        "what a policy says that it wants is not heard",
        "elastic/budget/instance_need.py",
        "if decision.wanted is not None:",
        "if decision.wanted is not None and decision.requests:",
        "tests/session/test_budget.py",
    ),
    Mutant(
        "idle instances work in advance",
        "model/control/controller.py",
        "done = min(one * self.instances * demand.seconds, there)",
        "done = one * self.instances * demand.seconds",
        "tests/model/control/test_controller.py",
    ),
    Mutant(
        "a bound is crossed only beyond it",
        "model/control/controller.py",
        "if asked >= table.upper[now]:\n        return table.fewest(asked)",
        "if asked > 1.1 * table.upper[now]:\n        return table.fewest(asked)",
        "tests/model/control/test_controller.py",
    ),
    Mutant(
        "a spike of a second is taken for a new level",
        "model/control/outlook.py",
        "        if steps > lasted * LASTING:\n",
        "        if steps > lasted * 10**6:\n",
        "tests/model/control/test_outlook.py",
    ),
    Mutant(
        "a trace with a gap is taken as it is",
        "model/join/trace_file.py",
        "np.abs(steps - step) > _EVEN * step",
        "np.abs(steps - step) > 10**6 * step",
        "tests/model/join/test_trace_file.py",
    ),
    Mutant(
        "the load is judged before it has settled",
        "model/control/saso.py",
        "(since > timeline.window_s)",
        "(since >= 0)",
        "tests/model/control/test_saso.py",
    ),
)
