"""Recursive functions written as generators, deeper than Python's stack."""

from __future__ import annotations

import pytest

from tidegate.descent import Step, descend


def depth(levels: int) -> Step[int]:
    below: int = 0 if levels == 0 else (yield depth(levels - 1))
    return below + 1


def failing(levels: int, caught_at: int) -> Step[str]:
    if levels == 0:
        raise ValueError("at the bottom")
    try:
        below: str = yield failing(levels - 1, caught_at)
    except ValueError as error:
        if levels != caught_at:
            raise
        return f"{error}, caught at {levels}"
    return below


def test_depth_does_not_matter() -> None:
    assert descend(depth(100_000)) == 100_001


def test_a_failure_goes_up_to_who_catches_it() -> None:
    assert descend(failing(10_000, caught_at=7)) == "at the bottom, caught at 7"
    with pytest.raises(ValueError, match="at the bottom"):
        descend(failing(10_000, caught_at=-1))
