"""The tutorial's last step: the same bytes from Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.console import SPARK, File, agrees, run, steps
from tests.docs.test_commands import TUTORIAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = ("tidegate generate", "tidegate run top.sql --master none --batch-rows 1000")


def test_the_same_bytes_on_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    compared = 0
    for step in steps(TUTORIAL):
        if isinstance(step, File):
            Path(step.name).write_text(step.text, encoding="utf-8")
        elif step.mark == SPARK:
            printed = run(step)
            assert agrees(step, printed), f"$ {step.text}\n{printed}"
            compared += 1
        elif step.text.startswith(NEEDED) and "--instances" not in step.text:
            run(step)
    assert compared == 2
