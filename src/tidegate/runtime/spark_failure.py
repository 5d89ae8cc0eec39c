"""What Spark says when something fails, in one line of ours."""

from __future__ import annotations

from tidegate.errors import RunError
from tidegate.runtime.job import Job


def tasks_failed(job: Job, error: BaseException) -> RunError:
    """The error for a batch whose tasks Spark gave up on."""
    return RunError(
        f"batch {job.batch}",
        "its tasks must finish",
        first_line(error),
        "Nothing of the batch was committed; run again to continue.",
    )


def spark_gone(job: Job, error: BaseException) -> RunError:
    """The error for a batch during which the JVM ended, or the connection to it."""
    return RunError(
        f"batch {job.batch}",
        "Spark must be there until its tasks have finished",
        first_line(error),
        "Nothing of the batch was committed; run again to continue.",
    )


def first_line(error: BaseException) -> str:
    """What an error of Spark or Py4J is about, without its stack."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    return lines[0] if lines else type(error).__name__
