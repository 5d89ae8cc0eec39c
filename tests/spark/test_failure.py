"""What is logged when the connection to Spark is lost."""

from __future__ import annotations

import logging

import pytest

from tidegate.execute.spark.failure import _OF_MEMORY, first_line, is_of_a_row, without_stacks


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


def test_a_failed_python_worker_is_told_by_its_exception() -> None:
    stack = (
        "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: "
        "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure:"
        " Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.1 executor driver): "
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n    process()\n'
        "OverflowError: date value out of range\n"
        "\n\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)\n"
    )
    assert first_line(RuntimeError(stack)) == "OverflowError: date value out of range"
    jvm = (
        stack.split("org.apache.spark.api.python")[0]
        + "java.lang.ArithmeticException: long overflow"
    )
    assert first_line(RuntimeError(jvm)) == "java.lang.ArithmeticException: long overflow"


@pytest.mark.parametrize(
    ("text", "of_a_row"),
    [
        ("SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", True),
        ("[USER_RAISED_EXCEPTION] no route SQLSTATE: P0001", True),
        ("java.lang.ArithmeticException: long overflow", True),
        ("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)", False),
        ("java.io.IOException: No space left on device", False),
        ("PythonException: Traceback (most recent call last):\n ArithmeticException", False),
    ],
)
def test_expressions_are_blamed_for_what_fails_on_a_row(text: str, of_a_row: bool) -> None:
    assert is_of_a_row(text) == of_a_row


@pytest.mark.parametrize(
    ("raised", "of_memory"),
    [
        ("MemoryError", True),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7 PiB", True),
        ("pyarrow.lib.ArrowMemoryError: malloc of size 64 failed", True),
        ("ValueError: MemoryError", False),
        ("OverflowError: date value out of range", False),
    ],
)
def test_a_worker_without_memory_is_told_apart(raised: str, of_memory: bool) -> None:
    """Then the batch is cut smaller and tried again."""
    stack = f'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n{raised}\n'
    assert (_OF_MEMORY.search(first_line(RuntimeError(stack))) is not None) == of_memory
