"""Slots of Spark for tasks that stay, counted for a context that has nothing else."""

from __future__ import annotations

from typing import Any

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
