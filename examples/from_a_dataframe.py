"""A streaming DataFrame as a stream: whatever Spark can read, Tidegate can window.

Shows: Session(spark), readStream as a source, and results given to a function, batch by batch.
       Here files of readings stand in for Kafka or any other source of Spark.
Run:   python examples/from_a_dataframe.py          needs Java 17 or newer on the PATH
"""

import sys
import tempfile

from pyspark.sql import SparkSession

import tidegate as tg


def show(table, batch):
    """Called once per committed batch; after a crash the newest may come again."""
    for row in table.to_pylist():
        print(batch, row["window_end"].isoformat(), row["sensor"], row["highest"], row["n"])


def main(master: str = "local[2]") -> None:
    spark = SparkSession.builder.master(master).appName("readings").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        readings = spark.range(600).selectExpr(
            "timestamp_seconds(1700000000 + id) AS ts",
            "id % 3 AS sensor",
            "id * id % 101 AS value",
        )
        readings.coalesce(1).write.parquet(f"{folder}/readings")
        frame = spark.readStream.schema(readings.schema).parquet(f"{folder}/readings")

        stream = tg.Session(spark).stream(frame, time="ts", name="readings")
        highest = (
            stream.window("5 minutes").group_by("sensor").agg(highest=tg.max("value"), n=tg.count())
        )
        query = highest.start(sink=tg.sink.call(show), checkpoint=f"{folder}/checkpoint")
        query.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
