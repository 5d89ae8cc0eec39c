"""Work in a thread beside the loop."""

from __future__ import annotations

import threading

import pytest

from tidegate.schedule import beside


def test_the_result_or_the_failure_comes_with_the_future() -> None:
    named = beside("beside-the-loop", lambda: threading.current_thread().name)
    assert named is not None
    assert named.result() == "beside-the-loop"
    failed = beside("beside-the-loop", lambda: 1 // 0)
    assert failed is not None
    assert isinstance(failed.exception(), ZeroDivisionError)


def test_where_no_thread_can_be_started_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Python is ending."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert beside("never", lambda: 1) is None
