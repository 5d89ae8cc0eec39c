"""Mistakes in answers within an error."""

from __future__ import annotations

from mutants.mutant import Mutant

_BOUNDED = "operate/aggregate/bounded"
_TESTS = "tests/property/test_bounds.py"

MUTANTS = (
    Mutant(
        "groups of a window are answered apart",
        f"{_BOUNDED}/answer.py",
        'return ["window_end"]',
        'return ["part"]',
        _TESTS,
    ),
    Mutant(
        "the end of an interval is rounded inwards",
        f"{_BOUNDED}/cells.py",
        "_put(exact, chosen, found.low, DOWN)",
        "_put(exact, chosen, found.low, UP)",
        _TESTS,
    ),
    Mutant(
        "a user's aggregate has no exact result to fall back on",
        f"{_BOUNDED}/user_aggregate.py",
        "look.result, ~decision.by_sample & ~whole)",
        "look.result, ~decision.by_sample & whole)",
        _TESTS,
    ),
    Mutant(
        "a user's aggregate takes its first look for enough",
        f"{_BOUNDED}/user_aggregate.py",
        "learned = np.where(needed > 0, np.clip(needed, first, most), most)",
        "learned = first",
        _TESTS,
    ),
    Mutant(
        "all of a sample is looked at, whatever the budget",
        f"{_BOUNDED}/moment.py",
        "return np.minimum(found.shares, kept)",
        "return kept",
        _TESTS,
    ),
    Mutant(
        "a quantile far from the middle has no end",
        "approx/rank.py",
        "sure_below, sure_above = (1 - fraction) ** rows <= rare, fraction**rows <= rare",
        "sure_below, sure_above = (1 - fraction) ** rows <= rare, fraction**rows > rare",
        _TESTS,
    ),
    Mutant(
        "samples of results depend on the cut",
        "plan/aggregate/bound.py",
        "prefixes=numbered(asked.prefixes) if rules.sampled else asked.prefixes,",
        "prefixes=asked.prefixes,",
        _TESTS,
    ),
)
