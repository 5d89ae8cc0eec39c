"""Connects to a Spark master: finds Java, starts the JVM, and says why where that fails."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tidegate.errors import OptionError
from tidegate.execute.java import ensure_java
from tidegate.execute.shutdown import clean_at_end
from tidegate.execute.spark.failure import first_line
from tidegate.execute.spark.session.master import (
    check_answers,
    is_one_host,
    with_retries,
    with_slots,
)
from tidegate.execute.spark.session.setting import PYTHON, start_settings, submitted_settings
from tidegate.execute.spark.session.submission import (
    active_session,
    is_submitted,
    prepared_conf,
    started_with,
    submitted_conf,
    unmet,
)
from tidegate.execute.spark.thread import take_charge

_log = logging.getLogger(__name__)

_ENDED_BY = re.compile(r"^(?:Exception in thread \"main\" |Error: )(?P<why>.+)$", re.MULTILINE)
"""How a JVM says what it ends by."""


def connect(
    master: str, conf: Mapping[str, str] | None = None, name: str = "tidegate"
) -> SparkSession:
    """A session for a master URL, with Java found first and workers on this Python.

    One that is active is taken, and a program that spark-submit has started uses its JVM. Of one
    that is started here, what the JVM says goes to a file that the error names when it fails.
    """
    conf = conf or {}
    session = active_session()
    if session is not None:
        _check_active(str(session.sparkContext.master), master, unmet(session, conf))
        return session
    check_answers(master)
    if is_submitted():
        session = _submitted(master, conf, name)
    else:
        session = _started(master, conf, name)
    take_charge(session.sparkContext)
    started_with(session.sparkContext, conf)
    if session.sparkContext.uiWebUrl:
        _log.info("the Spark UI is at %s", session.sparkContext.uiWebUrl)
    return session


def _check_active(there: str, master: str, conf: Mapping[str, str]) -> None:
    """A process has one Spark context: refuse what another one would be needed for."""
    here = is_one_host(there)
    if here != is_one_host(master) or (not here and there != master) or conf:
        raise OptionError(
            "--conf" if conf else "--master",
            "a process can have one Spark only",
            f"{' '.join(conf) or master} while there is a session on {there}",
            "Use that session, or stop it first.",
        )


def _started(master: str, asked: Mapping[str, str], name: str) -> SparkSession:
    ensure_java()
    asked = prepared_conf() | dict(asked)
    settings = {"spark.app.name": name, **start_settings(master, asked)}
    _name_python(settings)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    started, slots = with_slots(master)
    conf = SparkConf().setMaster(started).setAll(list({**slots, **settings}.items()))
    with tempfile.NamedTemporaryFile(prefix="tidegate-jvm-", suffix=".log", delete=False) as log:
        try:
            gateway = launch_gateway(conf, {"stderr": log, "stdout": log})
            SparkContext(conf=conf, gateway=gateway)
            session = SparkSession.builder.getOrCreate()
        except Exception as error:
            cause = _cause(error, Path(log.name))
            raise _no_start(master, asked, cause, f"{log.name} has more.") from error
    clean_at_end(Path(log.name).unlink, missing_ok=True)
    return session


def _name_python(settings: Mapping[str, str]) -> None:
    """Let workers have the Python of the settings, else of the environment, else of the driver.

    PySpark would take whatever `python3` is on their hosts, which may not have Tidegate.
    """
    if PYTHON in settings:
        os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _submitted(master: str, asked: Mapping[str, str], name: str) -> SparkSession:
    """A session as spark-submit was told; a master that the program names goes before."""
    conf = submitted_conf()
    settings = submitted_settings(dict(conf.getAll()), asked)
    _name_python(dict(conf.getAll()) | settings)
    conf.setMaster(with_retries(master)).setAll(list(settings.items()))
    if not conf.contains("spark.app.name"):
        conf.setAppName(name)
    try:
        SparkContext(conf=conf)
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        more = "the log of spark-submit has more."
        raise _no_start(master, asked, first_line(error), more) from error


def _no_start(master: str, asked: Mapping[str, str], cause: str, more: str) -> OptionError:
    if asked:
        names = ", ".join(asked)
        return OptionError(
            "--conf", f"Spark must start with {names}", cause, f"Change the settings; {more}"
        )
    return OptionError(
        "--master",
        "must be a Spark master that answers",
        f"{master} ({cause})",
        f"Use local[2], spark://host:port or none (without Spark); {more}",
    )


def _cause(error: BaseException, log: Path) -> str:
    """Why a JVM did not start; where PySpark knows only that it ended, what its log says."""
    said = _ENDED_BY.search(log.read_text(encoding="utf-8", errors="replace"))
    return said["why"] if said and "JAVA_GATEWAY_EXITED" in str(error) else first_line(error)
