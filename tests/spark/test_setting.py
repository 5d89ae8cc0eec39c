"""Settings of Spark: what is set for one host and for several, and what a user may change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import OptionError
from tidegate.execute.spark.session.setting import check_conf, start_settings, submitted_settings

ROOT = Path(__file__).parents[2]
SOCKETS = "spark.python.unix.domain.socket.dir"


def test_sockets_of_workers_are_in_a_folder_of_this_host_only_on_this_host() -> None:
    assert SOCKETS in start_settings("local[2]", {})
    for master in ("spark://there:7077", "yarn", "k8s://https://there", "local-cluster[2,1,512]"):
        settings = start_settings(master, {})
        assert not any("socket" in name for name in settings)
        assert "spark.executorEnv.PYTHONPATH" not in settings


def test_settings_of_the_user_win() -> None:
    settings = start_settings("local[2]", {"spark.ui.enabled": "true", "spark.app.name": "mine"})
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.app.name"] == "mine"


def test_workers_of_one_host_have_the_path_of_the_program() -> None:
    found = start_settings("local[2]", {})["spark.executorEnv.PYTHONPATH"].split(":")
    assert {place for place in sys.path if place} <= set(found)


def test_what_was_submitted_stays() -> None:
    assert submitted_settings({"spark.log.level": "WARN"}, {"spark.executor.memory": "4g"}) == {
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "4g",
    }


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("spark.sql.adaptive.enabled", "true", "must be false, so that every run gives the same"),
        ("spark.remote", "sc://there", "Use --master sc://host:port"),
        ("spark.submit.deployMode", "cluster", "spark-submit --deploy-mode cluster"),
        ("executor.memory", "4g", "Did you mean spark.executor.memory?"),
        ("spark.tidegate.executors", "auto", "must be fixed or follow; got auto"),
    ],
)
def test_settings_that_would_break_something_are_refused(name: str, value: str, part: str) -> None:
    with pytest.raises(OptionError) as caught:
        check_conf({name: value})
    assert part in str(caught.value)


def test_the_value_that_is_meant_anyway_may_be_given() -> None:
    given = {"spark.sql.session.timeZone": "utc", "spark.sql.ansi.enabled": "TRUE"}
    check_conf(given)
    assert given["spark.sql.session.timeZone"] == "utc"


def test_settings_that_spark_does_not_start_with_are_told_with_its_reason() -> None:
    """In a process of its own: this one may have a Spark."""
    command = (sys.executable, "-c", "from tidegate.cli.main import main; main()", "run")
    words = ("tests/cases/having/query.sql", "--stream", "orders=tests/cases/having/orders.csv")
    options = ("--master", "local[1]", "--conf", "spark.executor.memory=lots")
    done = subprocess.run(
        [*command, *words, *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.startswith(
        "tidegate: --conf: Spark must start with spark.executor.memory; got "
        "org.apache.spark.SparkException: Executor memory must be a positive number. Change the "
        "settings; "
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
