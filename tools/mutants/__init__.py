"""Mistakes that tests must find, between the code as it is and `tools/mutate.py`, which makes them.

Each is a piece of source that occurs exactly once in its file, what takes its place, and the tests
of which at least one must fail then. `tests/test_tools.py` checks that all still apply.
"""

from __future__ import annotations

from mutants import (
    ahead,
    asof,
    balanced,
    bounded,
    controller,
    costs,
    course,
    durable,
    gate,
    join,
    kernel,
    keyed,
    lake,
    lineage,
    message,
    metrics,
    model,
    output,
    owner,
    process,
    proof,
    routing,
    sample,
    shed,
    state,
    table,
    window,
)
from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *output.MUTANTS,
    *durable.MUTANTS,
    *gate.MUTANTS,
    *routing.MUTANTS,
    *kernel.MUTANTS,
    *keyed.MUTANTS,
    *lake.MUTANTS,
    *window.MUTANTS,
    *join.MUTANTS,
    *state.MUTANTS,
    *table.MUTANTS,
    *owner.MUTANTS,
    *process.MUTANTS,
    *proof.MUTANTS,
    *model.MUTANTS,
    *costs.MUTANTS,
    *controller.MUTANTS,
    *course.MUTANTS,
    *sample.MUTANTS,
    *bounded.MUTANTS,
    *asof.MUTANTS,
    *balanced.MUTANTS,
    *shed.MUTANTS,
    *ahead.MUTANTS,
    *lineage.MUTANTS,
    *metrics.MUTANTS,
    *message.MUTANTS,
)

__all__ = ["MUTANTS", "Mutant"]
