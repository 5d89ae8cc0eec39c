"""Connects to a server of Spark Connect by its URL, and ends sessions there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.errors import OptionError
from tidegate.execute.shutdown import clean_at_end
from tidegate.execute.spark.failure import first_line
from tidegate.execute.spark.session.master import check_answers, check_client

_log = logging.getLogger(__name__)

_open: WeakSet[SparkSession] = WeakSet()
"""Sessions that were made here; grows with those that are used at a time."""


def connect(master: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """A session of its own at a server; nothing is started, and settings are the server's."""
    assert not conf
    check_client()
    check_answers(master)
    try:
        session = SparkSession.builder.remote(master).create()
        _ = session.version
    except (PySparkException, RuntimeError, ValueError) as error:
        raise OptionError(
            "--master",
            "must be a server of Spark Connect that answers",
            f"{master} ({first_line(error)})",
            "See that it runs (sbin/start-connect-server.sh) and of which version it is.",
        ) from error
    return ended_with_program(session)


def ended_with_program(session: SparkSession) -> SparkSession:
    """The same session, which is ended before Python is: later its client would wait for ever."""
    if not _open:
        clean_at_end(_end_all)
    _open.add(session)
    return session


def end(session: SparkSession) -> None:
    """Let go of a session at the server, and of the connection; once more does nothing."""
    _open.discard(session)
    if session.client.is_closed:
        return
    try:
        session.client.release_session()
    except PySparkException as error:  # with the server it is gone anyway
        _log.debug("the session was not released: %s", error)
    session.client.close()


def _end_all() -> None:
    for session in list(_open):
        end(session)
