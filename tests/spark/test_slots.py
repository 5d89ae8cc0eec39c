"""What tasks that stay need: slots of Spark, counted, and a place for their socket."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tidegate.errors import OptionError
from tidegate.execute.resident.channel import door_at
from tidegate.execute.resident.depot import DepotPlan
from tidegate.execute.spark.resident import depot_plan, private_folder, suits_jobs
from tidegate.execute.spark.session.master import CORES, SHARE, with_retries, with_slots
from tidegate.execute.spark.slots import give_back, take


class Context:
    """What is asked of a Spark context that the user brought."""

    def __init__(self, **conf: str) -> None:
        self._conf = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}

    def getConf(self) -> Any:
        return self._conf


def test_a_query_whose_tasks_are_jobs_has_taken_none_and_gives_none_back() -> None:
    context: Any = Context()
    give_back(context, 0)
    assert take(context, 3) == 2
    give_back(context, 2)
    assert take(context, 3) == 2


def test_a_folder_for_temporary_files_may_have_a_long_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = private_folder()
    door_at(f"{folder}/crew").close()
    assert Path(folder).stat().st_mode & 0o077 == 0
    shutil.rmtree(folder)


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[1]", 1), ("local[4]", 4)])
def test_a_local_master_gets_slots_for_tasks_that_stay_and_tries_again(
    master: str, cores: int
) -> None:
    started, settings = with_slots(master)
    assert started == f"local[{SHARE * cores},4]"
    assert settings[CORES] == settings["spark.default.parallelism"] == str(cores)
    assert with_retries(master) == f"local[{cores},4]"


@pytest.mark.parametrize("master", ["local[2,1]", "local[*,3]", "spark://there:7077", "yarn"])
def test_a_master_that_says_more_or_is_another_stays_as_it_is(master: str) -> None:
    assert with_slots(master) == (master, {})
    assert with_retries(master) == master


def test_workers_are_told_of_ports_and_disks_as_spark_is() -> None:
    plain: Any = Context()
    assert depot_plan(plain, distant=True) == DepotPlan(True, 0, 16, shares_disk=True)
    given: Any = Context(
        tidegate_executor_port="7100", port_maxRetries="3", shuffle_readHostLocalDisk="false"
    )
    assert depot_plan(given, distant=True) == DepotPlan(True, 7100, 3, shares_disk=False)


@pytest.mark.parametrize("port", ["70000", "-1", "any"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    context: Any = Context(tidegate_executor_port=port)
    with pytest.raises(OptionError, match=rf"must be a whole number up to 65535; got {port}\."):
        depot_plan(context, distant=True)


@pytest.mark.parametrize(
    "name", ["network.crypto.enabled", "io.encryption.enabled", "dynamicAllocation.enabled"]
)
def test_a_cluster_that_encrypts_or_takes_executors_back_is_left_to_jobs(name: str) -> None:
    for value, suits in (("true", True), ("TRUE", True), ("false", False)):
        context: Any = Context(**{name: value})
        assert suits_jobs(context) == suits
