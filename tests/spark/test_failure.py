"""What is logged when the connection to Spark is lost."""

from __future__ import annotations

import logging

import pytest

from tidegate.execute.spark.failure import without_stacks


def _record(path: str) -> logging.LogRecord:
    return logging.LogRecord("root", logging.ERROR, path, 1, "sending", (), None)


def test_stacks_of_py4j_are_kept_back_while_a_batch_runs(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    caplog.set_level(logging.WARNING)
    with without_stacks():
        root.handle(_record("/lib/py4j/java_gateway.py"))
        root.handle(_record("/home/me/program.py"))
    root.handle(_record("/lib/py4j/java_gateway.py"))
    assert [r.pathname for r in caplog.records] == [
        "/home/me/program.py",
        "/lib/py4j/java_gateway.py",
    ]


def test_at_level_debug_nothing_is_kept_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with without_stacks():
        logging.getLogger().handle(_record("/lib/py4j/java_gateway.py"))
    assert len(caplog.records) == 1
