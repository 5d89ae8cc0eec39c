"""What instances keep between batches: found by the batch that follows, and by no other."""

from __future__ import annotations

import pytest

from tidegate.memory import MEMORY
from tidegate.operate.instance_cache import Kept


def test_the_next_batch_takes_what_the_one_before_has_left() -> None:
    Kept("run/a/0", None, "batch 0").leave("panes", [1], 8)
    following = Kept("run/a/0", "batch 0", "batch 1")
    assert following.take("panes") == [1]
    assert following.take("panes") is None  # a second try reads the state


def test_nothing_is_taken_of_another_batch_instance_or_kind() -> None:
    for before in (None, "batch 7"):
        Kept("run/a/0", None, "batch 0").leave("panes", [1], 8)
        assert Kept("run/a/0", before, "batch 1").take("panes") is None
        assert Kept("run/a/0", "batch 0", "batch 1").take("panes") is None  # it was let go
    Kept("run/a/0", None, "batch 0").leave("panes", [1], 8)
    assert Kept("run/a/1", "batch 0", "batch 1").take("panes") is None
    assert Kept("run/a/0", "batch 0", "batch 1").take("tuples") is None
    assert Kept("run/a/0", "batch 0", "batch 1").take("panes") == [1]


def test_who_sees_to_what_has_moved_takes_what_others_do_not() -> None:
    for moved, found in ((True, [1]), (False, None)):
        Kept("run/a/0", None, "batch 0").leave("tuples", [1], 8)
        switched = Kept("run/a/0", None, "batch 1", last="batch 0")
        assert switched.take("tuples", moved=moved) == found
        assert switched.take("tuples", moved=True) is None
    Kept("run/a/0", None, "batch 0").leave("tuples", [1], 8)
    assert Kept("run/a/0", None, "batch 2", last="batch 1").take("tuples", moved=True) is None


def test_what_is_too_large_for_the_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MEMORY, "_limit", 4_000)
    for nbytes, kept in ((1_000, [1]), (1_001, None)):
        Kept("run/a/0", None, "batch 0").leave("panes", [1], nbytes)
        assert Kept("run/a/0", "batch 0", "batch 1").take("panes") == kept
