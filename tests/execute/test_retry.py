"""Jobs whose rows were lost between tasks run again, a few times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.execute.spark.retry import retried

JOB: Any = SimpleNamespace(batch=7)


def lost(error: Exception) -> str | None:
    return str(error) if isinstance(error, KeyError) else None


@pytest.mark.parametrize(("losses", "gives"), [(0, True), (2, True), (3, False)])
def test_a_job_runs_again_until_its_rows_arrive(
    losses: int, gives: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def attempt() -> str:
        tries.append(1)
        if len(tries) <= losses:
            raise KeyError(f"worker {len(tries)}")
        return "done"

    if gives:
        assert retried(JOB, attempt, lost) == "done"
    else:
        with pytest.raises(KeyError, match="worker 3"):
            retried(JOB, attempt, lost)
    assert len(tries) == min(losses + 1, 3)
    told = [f"batch 7 runs again: 'worker {n + 1}'" for n in range(min(losses, 2))]
    assert caplog.messages == told


def test_another_error_is_raised_at_once() -> None:
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise ValueError("no such column")

    with pytest.raises(ValueError, match="no such column"):
        retried(JOB, attempt, lost)
    assert len(tries) == 1
