"""Explains failures that rows did not cause: missing software, and executors that died."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from tidegate.errors import RunError
from tidegate.version import __version__

AGAIN = "Nothing of the batch was committed; run again to continue."

EXECUTORS = "executors"
"""The place that errors about missing software name."""

PAGE = 'The page "On a cluster" has the ways.'


def have_it() -> str:
    """The advice for executors whose Python has no Tidegate."""
    return (
        "Install it there, or name a Python that has it with spark.pyspark.python (before a Spark "
        f"session of your own starts: PYSPARK_PYTHON={sys.executable}), or send one with "
        f"spark.archives. {PAGE}"
    )


_HOST = re.compile(r"Lost task .*?\((?P<host>\S+) executor (?P<executor>[^)]+)\)")
_OWN = frozenset("tidegate pyarrow numpy numba pandas obstore datasketches sqlglot".split())
"""Modules that come with an installed Tidegate; any other one is the user's."""


@dataclass(frozen=True)
class KnownFailure:
    """A failure that Spark reports in many lines: its pattern, and our error instead.

    `requirement` and `got` may use the groups of the pattern.
    """

    pattern: re.Pattern[str]
    requirement: str
    got: str
    remedy: str


_ENVIRONMENT = (
    KnownFailure(
        re.compile(r"Cannot run program \"(?P<python>[^\"]+)\"(?:.*?error=\d+, (?P<why>[^\n]+))?"),
        "must start Python",
        "no program {python}",
        "Name the Python of the executors with --conf spark.pyspark.python=PATH. " + PAGE,
    ),
    KnownFailure(
        re.compile(
            r"PYTHON_VERSION_MISMATCH\].*?different version: (?P<there>[\d.]+)"
            r" than that in driver: (?P<here>[\d.]+)",
            re.DOTALL,
        ),
        "must have the Python version of the driver, {here}",
        "Python {there}",
        "Install it there, or name the right one with --conf spark.pyspark.python=PATH. " + PAGE,
    ),
)

_LOST = (
    KnownFailure(
        re.compile(r"OutOfMemoryError: (?P<what>[^\n]+)"),
        "Spark must have memory for its tasks",
        "OutOfMemoryError: {what}",
        "Raise --conf spark.executor.memory (or spark.driver.memory), or lower --batch-rows, and "
        "run again to continue.",
    ),
    KnownFailure(
        re.compile(r"(?P<what>bigger than spark\.driver\.maxResultSize[^\n]*)"),
        "what tasks answer must fit into the driver",
        "results {what}",
        "Lower --batch-rows or raise --conf spark.driver.maxResultSize, and run again to continue.",
    ),
    KnownFailure(
        re.compile(r"IOException: (?P<what>No space left on device)"),
        "Spark must have room for its temporary files",
        "{what}",
        "Make room, or name other folders with --conf spark.local.dir=FOLDER, and run again to "
        "continue.",
    ),
    KnownFailure(
        re.compile(
            r"Fatal Python error: (?P<what>[^\n]+)(?:.*?(?P<file>File \"[^\n]+))?", re.DOTALL
        ),
        "its tasks must not crash",
        "a Python worker that crashed: {what}",
        "It is native code that crashes (a library, or a function of yours): the same rows are "
        "likely to crash it again.",
    ),
    KnownFailure(
        re.compile(r"Python worker exited unexpectedly|Python worker failed to connect back"),
        "its tasks must not crash",
        "a Python worker that ended without a word",
        "It was killed, often for want of memory (lower --batch-rows or --memory-limit), or native "
        "code crashed: --conf spark.python.worker.faulthandler.enabled=true shows where. Nothing "
        "of the batch was committed; run again to continue.",
    ),
    KnownFailure(
        re.compile(
            r"ExecutorLostFailure \(executor (?P<executor>\S+) exited[^)]*\)\s*"
            r"(?:Reason: (?P<why>[^\n]+))?"
        ),
        "executors must stay until its tasks have finished",
        "the loss of executor {executor}",
        "Its own log says why; where it was killed for want of memory, raise "
        "--conf spark.executor.memoryOverhead. " + AGAIN,
    ),
    KnownFailure(
        re.compile(r"(?P<what>SparkContext was shut down|Cannot call methods on a stopped Spark)"),
        "Spark must be there until its tasks have finished",
        "a Spark context that was stopped",
        AGAIN,
    ),
)

_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '(?P<name>[^']+)'")


def of_environment(text: str) -> RunError | None:
    """The error for software that executors lack, if the text says so; else None."""
    module = _MODULE.search(text)
    if module is not None:
        return _no_module(module["name"], host_of(text))
    return _told(_ENVIRONMENT, text, EXECUTORS)


def of_loss(text: str, where: str) -> RunError | None:
    """The error for executors or workers that died, if the text says so; else None."""
    return _told(_LOST, text, where)


def _no_module(name: str, host: str) -> RunError:
    got = f"ModuleNotFoundError: No module named '{name}'{host}"
    if name.partition(".")[0] in _OWN:
        return RunError(
            EXECUTORS,
            f"must have tidegate {__version__} and what it needs",
            got,
            have_it(),
        )
    return RunError(
        EXECUTORS,
        "must have the modules that the query uses",
        got,
        "Put its folder on PYTHONPATH, or send it with --conf spark.submit.pyFiles=MODULE.py "
        "(spark-submit --py-files).",
    )


def _told(known: tuple[KnownFailure, ...], text: str, where: str) -> RunError | None:
    for one in known:
        match = one.pattern.search(text)
        if match is None:
            continue
        groups = match.groupdict(default="")
        got = one.got.format(**groups) + host_of(text)
        if groups.get("why"):
            got += f" ({groups['why'].strip()})"
        if groups.get("file"):
            got += f" at {groups['file'].strip()}"
        return RunError(where, one.requirement.format(**groups), got, one.remedy)
    return None


def host_of(text: str) -> str:
    """` on HOST` for the last host that tried the task; empty for the driver's own."""
    found = [m for m in _HOST.finditer(text) if m["executor"] != "driver"]
    return f" on {found[-1]['host']}" if found else ""
