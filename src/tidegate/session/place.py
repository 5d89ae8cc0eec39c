"""Decides where tasks run, from the user's options, and makes the runner for that place."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from tidegate import schedule
from tidegate.cores import cores
from tidegate.errors import OptionError
from tidegate.execute.java import ensure_java
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.execute.runner import JobRunner
from tidegate.execute.spark.session.master import (
    check_answers,
    check_client,
    is_connect,
    is_one_host,
)
from tidegate.execute.spark.session.setting import check_conf
from tidegate.plan.physical import SPARK, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.execute.spark.session.access import SparkAccess

T = TypeVar("T")

NO_SPARK = "none"
DEFAULT_MASTER = "local[*]"
SUBMITTED = ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS")
"""The environment variables that spark-submit or the host of a notebook sets."""
EXCHANGES = ("auto", "shared", "shuffle")
_UNKNOWN = 2
"""The default instances of a query if only the cluster knows how many tasks run at once."""
EXECUTIONS = ("auto", "resident", "jobs")


@dataclass(frozen=True)
class Place:
    """Where tasks run: without Spark, on a master to connect to, or in an existing session.

    `conf` are settings of a Spark that is started here.
    """

    master: str = DEFAULT_MASTER
    session: SparkSession | None = None
    exchange: str = "auto"
    conf: Mapping[str, str] = field(default_factory=dict)
    execution: str = "auto"
    title: str = ""
    """The user's name for the query, for Spark's pages; empty to use the query's own."""

    @staticmethod
    def at(
        master: str | None,
        session: SparkSession | None = None,
        exchange: str = "auto",
        conf: Mapping[str, str] | None = None,
        execution: str = "auto",
    ) -> Place:
        """The place that a user names; by default the Spark that is there.

        That is the session of this process, else the master of spark-submit, else this host.
        """
        if session is None and master is None:
            session, master = _already_there()
        if session is not None and conf:
            conf = _access(session).unmet(conf)
        return Place(master or DEFAULT_MASTER, session, exchange, conf or {}, execution)

    def __post_init__(self) -> None:
        pattern = r"none|local(\[([1-9]\d*|\*)(,\d+)?\])?|local-cluster\[.+\]|(spark|k8s|yarn|mesos).*|sc://.+"
        if self.session is None and not re.fullmatch(pattern, self.master):
            raise OptionError(
                "--master",
                "must be none, local[N], or the URL of a Spark master",
                self.master,
                "Use for example local[2], spark://host:7077, or none to run without Spark.",
            )
        if self.exchange not in EXCHANGES:
            raise OptionError(
                "--exchange", f"must be one of {', '.join(EXCHANGES)}", str(self.exchange)
            )
        if self.execution not in EXECUTIONS:
            raise OptionError(
                "--execution", f"must be one of {', '.join(EXECUTIONS)}", str(self.execution)
            )
        check_conf(self.conf)
        if self.conf and not self.on_spark:
            raise OptionError(
                "--conf",
                "is for Spark",
                f"{'='.join(next(iter(self.conf.items())))} with --master none",
                "Leave it out, or name another master.",
            )
        if self.conf and self.session is not None:
            raise OptionError(
                "--conf",
                "is for a Spark that is started for the query",
                f"{', '.join(self.conf)} for a session that is there already",
                "Set it where the session is made.",
            )
        if self.conf and is_connect(self.master):
            raise OptionError(
                "--conf",
                "is for a Spark that is started for the query",
                f"{', '.join(self.conf)} for the server {self.master}",
                "Set it where the server is started.",
            )
        if self.execution == "resident" and is_connect(self.location):
            raise OptionError(
                "--execution",
                "resident needs tasks that this process can reach",
                f"{self.location}, over Spark Connect",
                "Use --execution auto: each batch is a job of its own.",
            )
        if self.execution == "resident" and self.exchange == "shuffle":
            raise OptionError(
                "--execution",
                "resident has tasks that exchange tuples among themselves",
                "--exchange shuffle",
                "Use --exchange auto, or --execution auto.",
            )
        if self.exchange == "shared" and self.on_spark and not self.on_one_host:
            raise OptionError(
                "--exchange",
                "shared needs all tasks on one host",
                f"the master {self.location}",
                "Use --exchange auto, which sends tuples from host to host.",
            )

    def but(self, exchange: str | None, execution: str | None) -> Place:
        """The same place with another exchange or execution, if they are given."""
        return replace(
            self, exchange=exchange or self.exchange, execution=execution or self.execution
        )

    @property
    def in_vain(self) -> str | None:
        """The option that says how Spark is to do something, where there is no Spark."""
        if self.on_spark:
            return None
        if self.execution != "auto":
            return f"--execution {self.execution}"
        return "--exchange shuffle" if self.exchange == "shuffle" else None

    @property
    def on_one_host(self) -> bool:
        """Whether all tasks run on the host of the driver."""
        return not self.on_spark or is_one_host(self.location)

    @property
    def location(self) -> str:
        """The master; for an existing session, that of the session."""
        return self.master if self.session is None else _access(self.session).master

    @property
    def on_spark(self) -> bool:
        return self.session is not None or self.master != NO_SPARK

    def default_instances(self) -> int:
        """As many instances as tasks can run at once."""
        if self.session is not None:
            return _access(self.session).parallelism or _UNKNOWN
        local = re.match(r"local(?:\[(\d+|\*))?", self.master)
        if local is None:
            return 1 if not self.on_spark else _UNKNOWN
        if local.group(1) == "*":
            return cores()
        return max(int(local.group(1) or 1), 1)

    def cores(self) -> int | None:
        """How many tasks can run at once; None if only the cluster knows."""
        local = re.match(r"none$|local(\[|$)", self.master) is not None
        if self.session is not None:
            return _access(self.session).parallelism
        return self.default_instances() if local else None

    def connected(self) -> Place:
        """The same place with a session; starts Spark if it is not running yet."""
        if not self.on_spark or self.session is not None:
            return self
        if is_connect(self.master):
            from tidegate.execute.spark.session.client import connect
        else:
            from tidegate.execute.spark.session.session import connect

        # Not on the main thread. There a Spark context would install a handler for Ctrl-C that
        # cancels the jobs of all queries; and this way the wait can be interrupted.
        connecting = schedule.current().start(
            "tidegate-connect", lambda: connect(self.master, self.conf), daemon=True
        )
        return replace(self, session=connecting.result(), conf={})

    def titled(self, title: str) -> Place:
        """The same place with this title, unless it has one already."""
        return self if self.title else replace(self, title=title)

    def check(self) -> None:
        """Refuse a place where Spark cannot start; called before a checkpoint is made."""
        if self.on_spark and self.session is None:
            if is_connect(self.master):
                check_client()
            else:
                ensure_java()
            check_answers(self.master)

    def check_checkpoint(self, location: str, local: bool) -> None:
        """Refuse a checkpoint in which the exchange cannot leave its files."""
        if self.exchange == "shared" and self.on_spark and not local:
            raise OptionError(
                "--exchange",
                "shared needs a checkpoint on this host",
                location,
                "Use --exchange auto, or a folder as --checkpoint.",
            )

    def exchange_of(self, plan: Plan) -> str | None:
        """How tuples of a plan travel between hosts, in words; None if there is only one host."""
        if self.on_one_host:
            return None
        shuffle = "a shuffle, in jobs of each batch"
        if (
            self.exchange == "shuffle"
            or self.execution == "jobs"
            or any(prefix.engine == SPARK for s in plan.subqueries for prefix in s.prefixes)
        ):
            return shuffle
        return f"from task to task, where Spark has slots for tasks that stay; else {shuffle}"

    def runner(self) -> JobRunner:
        """The runner for this place; starts Spark if it is not running yet."""
        session = self.connected().session
        if session is None:
            return LocalRunner()
        return _access(session).runner(self.exchange, self.execution, self.title)


class DeferredRunner(JobRunner):
    """A placeholder for the runner of a place until the first batch, which replaces it.

    So Spark is not started for a query before all other checks of the query have passed.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def connected(self) -> JobRunner:
        return self._place.runner()

    def tasks(self) -> None:
        return None

    def run(self, job: Job) -> list[Outcome]:
        raise AssertionError("the loop runs jobs on what `connected` gives")


def texts(conf: Mapping[str, object]) -> dict[str, str]:
    """Settings as texts for Spark: `True` becomes `true`."""
    return {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in conf.items()}


def _access(session: SparkSession) -> SparkAccess:
    from tidegate.execute.spark.session.access import access_of

    return access_of(session)


def _already_there() -> tuple[SparkSession | None, str | None]:
    """The session of this process, or the master that it was submitted to.

    Importing PySpark takes a while, so it is imported only if the program can have either.
    """
    submitted = any(name in os.environ for name in SUBMITTED)
    if "pyspark" not in sys.modules and not submitted:
        return None, None
    from tidegate.execute.spark.session.submission import active_session, submitted_master

    session = active_session()
    return session, None if session is not None else submitted_master()
