"""A query on Spark from and to Postgres: joined to a table, its rows written once."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import tidegate as tg
from tests.driver.scene import csv
from tests.postgres.server import Server

ROWS = [(second, key, second) for second in range(60) for key in "abc"]


def test_joined_and_written_once(spark: SparkSession, tmp_path: Path) -> None:
    server = Server()
    try:
        server.ask("CREATE TABLE zones AS SELECT 'a' AS k, 'Port' AS zone")
        source = csv(tmp_path / "s.csv", *ROWS)
        for _ in range(2):  # the second time there is nothing to do
            session = tg.Session(spark=spark)
            rides = session.stream(source, time="ts", name="rides")
            zones = session.table(server.uri("zones"), name="zones")
            query = session.sql(
                "SELECT z.zone, COUNT(*) AS n, SUM(r.v) AS v FROM rides AS r [RANGE 30 SECONDS] "
                "LEFT JOIN zones AS z ON r.k = z.k GROUP BY z.zone",
                rides=rides,
                zones=zones,
            )
            out = server.uri("counts")
            query.start(sink=out, checkpoint=tmp_path / "c", batch_rows=25).wait()
        found = server.ask("SELECT zone, n, v FROM counts ORDER BY window_start, zone")
        expected = [("Port", 30, 435), (None, 60, 870), ("Port", 30, 1335), (None, 60, 2670)]
        assert found == expected
    finally:
        server.close()
