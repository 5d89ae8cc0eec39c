"""PySpark's daemon with what tasks import: its workers are forked with it, and do not look at it.

A worker by itself takes a second for imports, and PySpark lets it collect garbage after every task:
each time through all that it has imported, which takes longer than most tasks of the tests.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401 - PySpark imports it for the first task
from pyspark import worker  # noqa: F401
from pyspark.daemon import manager

from tidegate.execute.spark import resident, task_exchange  # noqa: F401
from tidegate.session import launch  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
