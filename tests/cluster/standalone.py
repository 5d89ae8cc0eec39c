"""The cluster of the tests: the one of `make cluster`, and settings for programs on it."""

from __future__ import annotations

from tools.cluster import (
    HOST,
    LIGHT,
    REPOSITORY,
    SPARK,
    Standalone,
    environment,
    namespaces_work,
)

CONF = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.sql.codegen.wholeStage": "false",
    "spark.shuffle.readHostLocalDisk": "false",  # which would see that they are on one host
}
"""For a program on the cluster."""

__all__ = [
    "CONF",
    "HOST",
    "REPOSITORY",
    "SPARK",
    "Standalone",
    "environment",
    "namespaces_work",
]
