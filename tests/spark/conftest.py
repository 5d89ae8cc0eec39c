"""One small Spark for all tests below this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tools.cluster import LIGHT

from tests.crash.process import WARM_WORKERS
from tidegate.execute.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT_STACKS = "-XX:MaxJavaStackTraceDepth=8"
"""PySpark fetches the stack of each exception up to five times; a long one, which the JVM sends in
two pieces, takes 40 ms each time: the second piece waits until the first is acknowledged."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as a user makes one, in UTC, without the web page; stopped after the last test.

    Of its three slots a query takes two for tasks that stay.
    """
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[3]")
        .appName("tidegate-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"{LIGHT} {SHORT_STACKS}")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .config(map=WARM_WORKERS)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> Iterator[str]:
    """A server of Spark Connect in the same JVM, on a port of its own."""
    assert spark._jvm is not None
    assert spark.sparkContext._jsc is not None
    services = spark._jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    service.stop(spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty())
