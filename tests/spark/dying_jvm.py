"""A program whose JVM dies, on a standard error so slow that a stack is never printed in time.

    python tests/spark/dying_jvm.py task|frame

Its last line on standard output has the threads that are left when Python takes itself down.
"""

from __future__ import annotations

import atexit
import threading


# Before any other import, because handlers are called in reverse: this is the last one.
@atexit.register
def threads_left() -> None:
    left = sorted(t.name for t in threading.enumerate() if t is not threading.main_thread())
    print(left, flush=True)
    if left:  # let the end of Python fall into the middle of a line that one of them prints
        printing.clear()
        printing.wait(5 * LINE_S)


import io  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import pyspark  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import tidegate as tg  # noqa: E402
from tidegate.errors import RunError  # noqa: E402
from tidegate.execute.spark.session.session import connect  # noqa: E402

LINE_S = 0.3
"""How long a line takes; a thread that prints a stack is still at it when the program ends."""


class SlowTerminal(io.RawIOBase):
    """Standard error for lines that take their time unless the main thread writes them."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if threading.current_thread() is not threading.main_thread():
            printing.set()
            noticed.set()
            time.sleep(LINE_S)
        return os.write(2, data)


printing = threading.Event()
"""Set whenever a thread begins to write a line."""

noticed = threading.Event()
"""Set when the server of accumulators has seen that the JVM is gone, or prints that it has."""


def kill_jvm(context: pyspark.SparkContext) -> None:
    server: Any = context._accumulatorServer
    close = server.shutdown_request

    def closed(request: Any) -> None:
        close(request)
        noticed.set()

    server.shutdown_request = closed
    gateway: Any = context._gateway
    gateway.proc.kill()
    assert noticed.wait(60), "the server of accumulators has a connection that ends"


def run_task(context: pyspark.SparkContext) -> None:
    """After it the JVM is connected to the server of accumulators."""
    assert context.parallelize([1], 1).map(lambda x: x + 1).collect() == [2]


def task() -> None:
    """A session of ours."""
    context = connect("local[1]").sparkContext
    run_task(context)
    kill_jvm(context)


def frame() -> None:
    """A session that the program brings, and a query over a streaming frame."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    run_task(spark.sparkContext)
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    stream = tg.Session(spark).stream(rows, time="timestamp", name="s")
    query = stream.start(sink=tg.sink.call(lambda rows, batch: None), follow=True)
    while query.status()["batch"] < 0:
        query.wait(0.05)
    kill_jvm(spark.sparkContext)
    try:
        query.wait()
    except RunError as error:
        print(error)


if __name__ == "__main__":
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(SlowTerminal()), line_buffering=True)
    {"task": task, "frame": frame}[sys.argv[1]]()
    sys.exit(1)
