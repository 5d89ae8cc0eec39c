"""The Spark that is there before a query asks for one: an active session, or spark-submit's JVM."""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set in the environment of programs that spark-submit has started."""

_given: WeakKeyDictionary[SparkContext, dict[str, str]] = WeakKeyDictionary()
"""What contexts were given by us; grows with Spark contexts."""


def is_submitted() -> bool:
    """Whether spark-submit has started this program, and has a JVM waiting for it."""
    return _GATEWAY in os.environ


def active_session() -> SparkSession | None:
    """The session that this process has, of any thread; None where no Spark context is there."""
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


def unmet(session: SparkSession, conf: Mapping[str, str]) -> dict[str, str]:
    """Those settings that a session has not; it may have been started with them.

    Spark adds something to a few of them, so what it was given counts as well.
    """
    there, given = session.sparkContext.getConf(), _given.get(session.sparkContext, {})
    return {n: v for n, v in conf.items() if there.get(n) != v and given.get(n) != v}


def started_with(context: SparkContext, conf: Mapping[str, str]) -> None:
    """Remember what a context was given, for `unmet`."""
    _given[context] = dict(conf)


def submitted_conf() -> SparkConf:
    """What the program was submitted with; connects to the JVM, and starts no Spark context."""
    SparkContext._ensure_initialized(gateway=SparkContext._gateway or launch_gateway())
    return SparkConf()


def submitted_master() -> str | None:
    """The master that was chosen outside the program; None where none was."""
    if is_submitted():
        return str(submitted_conf().get("spark.master", "")) or None
    return next((value for word, value in _arguments() if word == "--master"), None)


def prepared_conf() -> dict[str, str]:
    """Settings that whoever prepared the environment of a notebook has chosen."""
    given = (value.partition("=") for word, value in _arguments() if word == "--conf")
    return {name: value for name, sign, value in given if sign}


def _arguments() -> Iterator[tuple[str, str]]:
    """Each word that PySpark passes to spark-submit, with the one after it."""
    return itertools.pairwise(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
