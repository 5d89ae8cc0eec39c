"""How a session reaches Spark: through a JVM of this process, or over Spark Connect.

Where the two differ, whoever has a session in hand asks here, and gets one of two objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidegate.execute.runner import JobRunner


class SparkAccess(Protocol):
    """What is asked of a session, or done with it, in another way for each kind."""

    @property
    def master(self) -> str:
        """Where its tasks run, as `--master` names it."""

    @property
    def parallelism(self) -> int | None:
        """How many tasks run at once there; None where only the server knows."""

    @property
    def calls_back(self) -> bool:
        """Whether Spark can call a function of this process for each micro-batch of a stream."""

    def own_session(self) -> SparkSession:
        """A session beside it that has what is registered there, and none of its settings."""

    def check_stable(self, typed: DataFrame, expressions: Sequence[str], rows: DataFrame) -> None:
        """Refuse expressions over rows, `typed` with them, that draw numbers or read the clock."""

    def unmet(self, conf: Mapping[str, str]) -> dict[str, str]:
        """Those settings that it has not."""

    def take_charge(self) -> None:
        """Keep what serves the session in this process quiet, and end it with the program."""

    def runner(self, exchange: str, execution: str, title: str) -> JobRunner:
        """What runs the jobs of a query there."""


def access_of(session: SparkSession) -> SparkAccess:
    """How this session reaches Spark."""
    if type(session).__module__.startswith("pyspark.sql.connect."):
        from tidegate.execute.spark.session.connect import ConnectAccess

        return ConnectAccess(session)
    from tidegate.execute.spark.session.classic import ClassicAccess

    return ClassicAccess(session)
