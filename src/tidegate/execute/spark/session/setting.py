"""Checks the settings of `--conf`, and adds those that a session is started with."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping

from tidegate.errors import OptionError
from tidegate.execute.shutdown import clean_at_end
from tidegate.execute.spark.session.master import is_one_host

PYTHON = "spark.pyspark.python"
"""The Python of the executors; PySpark takes it from the environment of the driver."""

_PATH = "spark.executorEnv.PYTHONPATH"
"""Where workers find modules. On one host they have those of the program, whose script may be in
another folder than it was started from."""

EXECUTORS = "spark.tidegate.executors"
"""The property that says who chooses how many executors a query has."""

FIXED, FOLLOW = "fixed", "follow"

_DYNAMIC = "spark.dynamicAllocation.enabled"

_SOCKET_FOLDER_LENGTH = 60

_OURS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""What is set unless the user, or who has submitted the program, says otherwise."""

_FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
}
"""What queries mean and where their rows go depends on these: the same for every run."""

_ELSEWHERE = {
    "spark.master": "Use --master, or master= in Python.",
    "spark.remote": "Use --master sc://host:port, or master= in Python.",
    "spark.submit.deployMode": "The driver runs where this command does. To have it on the "
    "cluster, start it with spark-submit --deploy-mode cluster.",
}


def check_conf(conf: Mapping[str, str], where: str = "--conf") -> None:
    """Refuse settings that Spark does not know as such, or that would break what is promised."""
    for name, value in conf.items():
        got = f"{name}={value}"
        if not name.startswith("spark."):
            raise OptionError(
                where,
                "the names of Spark's settings start with spark.",
                got,
                f"Did you mean spark.{name}?" if name else None,
            )
        if name in _FIXED and value.lower() != _FIXED[name].lower():
            raise OptionError(
                where,
                f"{name} must be {_FIXED[name]}, so that every run gives the same rows",
                got,
                "Leave it out.",
            )
        if name in _ELSEWHERE:
            raise OptionError(where, f"{name} cannot be set here", got, _ELSEWHERE[name])
    check_executors(conf, where)


def check_executors(conf: Mapping[str, str], where: str = "--conf") -> None:
    """Refuse a choice of executors that is not known, or that Spark makes by itself."""
    chosen = conf.get(EXECUTORS, FIXED)
    if chosen not in (FIXED, FOLLOW):
        raise OptionError(where, f"{EXECUTORS} must be {FIXED} or {FOLLOW}", chosen)
    if chosen == FOLLOW and conf.get(_DYNAMIC, "false").lower() == "true":
        raise OptionError(
            where,
            f"{EXECUTORS}={FOLLOW} needs {_DYNAMIC}=false",
            f"{_DYNAMIC}=true",
            "Leave one of the two out: with dynamic allocation Spark chooses the executors.",
        )


def sql_settings() -> Mapping[str, str]:
    """What the SQL of queries runs with, whatever the session of the caller has."""
    return _FIXED


def start_settings(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that is started here; those of the user win."""
    one_host = is_one_host(master)
    settings = _OURS | _folder_settings(one_host)
    if one_host:
        settings[_PATH] = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    return settings | dict(conf)


def submitted_settings(given: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """What is added to the settings of a program that was submitted, which stay as they are."""
    quiet = {name: _OURS[name] for name in ("spark.ui.showConsoleProgress", "spark.log.level")}
    return {name: value for name, value in quiet.items() if name not in given} | dict(conf)


def _folder_settings(one_host: bool) -> dict[str, str]:
    """Keep the warehouse out of the user's folder, and let workers be reached by Unix sockets.

    Over TCP a task waits 40 ms for an answer. The sockets' names must be short, so not below a
    folder for temporary files that has a long one. Executors on other hosts do not have the folder,
    nor does one of ours exist on all of them: they are reached over TCP, with a secret.
    """
    folder = tempfile.mkdtemp(prefix="tidegate-")
    clean_at_end(shutil.rmtree, folder, ignore_errors=True)
    settings = {"spark.sql.warehouse.dir": f"{folder}/warehouse"}
    if one_host and len(folder) <= _SOCKET_FOLDER_LENGTH:
        settings["spark.python.unix.domain.socket.enabled"] = "true"
        settings["spark.python.unix.domain.socket.dir"] = folder
    return settings
