"""What is said of executors and workers that died, or lack something, in place of a stack."""

from __future__ import annotations

import pytest

from tidegate.execute.spark.loss import of_environment, of_loss
from tidegate.version import __version__

GAVE_UP = (
    "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: "
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 0.0 (TID 3) ({host} executor {executor}): {reason}\n"
    "\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)\n"
)

TRACE = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n'
)

CASES = {
    "no Tidegate": (
        TRACE + "ModuleNotFoundError: No module named 'tidegate'",
        f"executors: must have tidegate {__version__} and what it needs; got ModuleNotFoundError: "
        "No module named 'tidegate' on 10.0.0.7. Install it there, or name a Python that has it",
    ),
    "a module of the user's": (
        TRACE + "ModuleNotFoundError: No module named 'fares.zone'",
        "executors: must have the modules that the query uses; got ModuleNotFoundError: No module "
        "named 'fares.zone' on 10.0.0.7. Put its folder on PYTHONPATH, or send it with --conf "
        "spark.submit.pyFiles=MODULE.py",
    ),
    "another Python": (
        TRACE + "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] "
        "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot",
        "executors: must have the Python version of the driver, 3.11; got Python 3.12 on 10.0.0.7.",
    ),
    "no Python": (
        'java.io.IOException: Cannot run program "/no/python": error=2, No such file or directory',
        "executors: must start Python; got no program /no/python on 10.0.0.7 (No such file or "
        "directory). Name the Python of the executors with --conf spark.pyspark.python=PATH.",
    ),
    "a lost executor": (
        "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: "
        "Command exited with code 137",
        "batch 7: executors must stay until its tasks have finished; got the loss of executor 3 on "
        "10.0.0.7 (Command exited with code 137). Its own log says why",
    ),
    "a dead worker": (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "batch 7: its tasks must not crash; got a Python worker that ended without a word on "
        "10.0.0.7. It was killed",
    ),
    "a crash in native code": (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): Fatal "
        "Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  File "
        '"/app/zone.py", line 3 in area\n',
        "batch 7: its tasks must not crash; got a Python worker that crashed: Segmentation fault "
        'on 10.0.0.7 at File "/app/zone.py", line 3 in area. It is native code that crashes',
    ),
    "a full heap": (
        "java.lang.OutOfMemoryError: Java heap space",
        "batch 7: Spark must have memory for its tasks; got OutOfMemoryError: Java heap space on "
        "10.0.0.7. Raise --conf spark.executor.memory",
    ),
    "a full disk": (
        "java.io.IOException: No space left on device",
        "batch 7: Spark must have room for its temporary files; got No space left on device on "
        "10.0.0.7. Make room, or name other folders with --conf spark.local.dir=FOLDER",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_has_the_cause_the_host_and_the_remedy(case: str) -> None:
    reason, said = CASES[case]
    text = GAVE_UP.format(host="10.0.0.7", executor="1", reason=reason)
    error = of_environment(text) or of_loss(text, "batch 7")
    assert error is not None
    assert str(error).startswith(said)
    assert "\n" not in str(error)


def test_on_this_host_no_host_is_named() -> None:
    text = GAVE_UP.format(host="me", executor="driver", reason="OutOfMemoryError: Java heap space")
    assert " on me" not in str(of_loss(text, "batch 7"))


def test_what_the_code_of_a_query_raises_is_another_matter() -> None:
    text = GAVE_UP.format(host="10.0.0.7", executor="1", reason=TRACE + "ValueError: odd moon")
    assert of_environment(text) is None
    assert of_loss(text, "batch 7") is None
