"""What tasks that stay need: slots of Spark, counted, and a place for their socket."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tidegate.execute.resident.channel import door_at
from tidegate.execute.spark.resident import private_folder
from tidegate.execute.spark.slots import give_back, take


class Context:
    """What `take` asks of a Spark context that the user brought."""

    def getConf(self) -> Any:
        return {}


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
