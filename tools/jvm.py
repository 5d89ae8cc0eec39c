"""Options of JVMs that start quickly, and the archive of Spark's classes that they map.

    python tools/jvm.py FILE

Of the 9 seconds of processor time that a JVM takes until Spark's first job is done, 5 go into the
loading of classes from jars. One that maps an archive of them saves these. `make ready` writes the
archive once, and the tests start dozens of JVMs; one with another Java or other jars ignores it.
"""

from __future__ import annotations

import sys
from pathlib import Path

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No optimising compiler, no collector threads."""

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"


def light() -> str:
    """What makes a JVM start quickly that has little to do."""
    if not ARCHIVE.exists():  # a JVM that is told to map it would not map those of Java either
        return QUICK
    # The launcher of Spark has other jars, and would print that it does not use the archive.
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE} -Xlog:cds=off -Xlog:cds+dynamic=off"


def write(file: Path) -> None:
    """Run what the tests run first; the JVM writes the archive when it ends."""
    from tidegate.execute.spark.session.session import connect

    options = f"{QUICK} -XX:ArchiveClassesAtExit={file} -Xlog:cds=off -Xlog:cds+dynamic=off"
    conf = {"spark.driver.extraJavaOptions": options, "spark.sql.shuffle.partitions": "2"}
    spark = connect("local[2]", conf)
    jvm = spark.sparkContext._gateway.proc
    assert spark.sparkContext.parallelize([1, 2], 2).map(lambda x: x + 1).collect() == [2, 3]
    counts = spark.range(10).selectExpr("id % 2 AS k").groupBy("k").count()
    assert counts.mapInArrow(lambda tables: tables, counts.schema).toArrow().num_rows == 2
    spark.stop()
    jvm.stdin.close()
    jvm.wait()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
