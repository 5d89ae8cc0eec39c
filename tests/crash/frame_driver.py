"""A process to be killed whose input is a streaming DataFrame, spooled into the checkpoint.

python tests/crash/frame_driver.py '{"inputs": ..., "out": ..., "checkpoint": ...}'
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tidegate as tg
from tests.crash.driver import observer_of
from tests.crash.scene import IN_ORDER

BATCH_ROWS = 60


def run(request: dict[str, Any]) -> None:
    """Query the files of a folder, which Spark reads one by one."""
    from tidegate.execute.spark.session.session import connect

    spark = connect("local[2]")
    files = spark.readStream.option("maxFilesPerTrigger", 1)
    frame = files.schema(IN_ORDER.columns).parquet(request["inputs"])
    session = tg.Session(spark)
    rides = session.stream(frame, time="at", name="rides", disorder="10 seconds")
    query = session.sql(IN_ORDER.query, rides=rides).start(
        sink=tg.sink.files(request["out"], "json"),
        checkpoint=request["checkpoint"],
        batch_rows=BATCH_ROWS,
        instances=2,
        observer=observer_of(request.get("fault")),
    )
    query.wait()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
