"""What one version of Spark has and another lacks, and what is done instead where it is lacking.

The only place that knows versions of Spark. Others ask for what they need by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from tidegate.errors import OptionError

OLDEST, NEWEST = (4, 0), (4, 3)
"""The versions that tests run with; newer ones are not refused."""

PARTITION_IDS = "partition ids"
"""`DataFrame.repartitionById`: a column says which partition a row goes to."""

ARROW_FUNCTIONS = "Arrow functions"
"""`arrow_udf`: a Python function that Spark SQL calls with Arrow arrays."""

CONNECT_CLONES, FRESH_SESSIONS = "clones over Spark Connect", "fresh sessions over Spark Connect"
"""`cloneSession` and `newSession` of a client of Spark Connect."""

_SINCE = {
    PARTITION_IDS: (4, 1),
    ARROW_FUNCTIONS: (4, 1),
    CONNECT_CLONES: (4, 1),
    FRESH_SESSIONS: (4, 3),
}

_IN_UTC = (
    {"timezone": "UTC"}
    if "timezone" in signature(to_arrow_schema).parameters
    else {"timestamp_utc": True}
)
"""How PySpark is asked for times in UTC."""

_STREAMING = "pyspark.sql.streaming.datasource"
AvailableNow: type = (
    import_module(_STREAMING).SupportsTriggerAvailableNow if find_spec(_STREAMING) else object
)
"""What a stream reader is that knows Spark's trigger `availableNow`, from 4.2 on. Before that such
a run is one micro-batch: one that it has to repeat, or all that there is."""

_WORD = 0xFFFFFFFF


def has(session: SparkSession, feature: str) -> bool:
    """Whether the Spark of a session has a feature: PySpark here, and the server that it is of."""
    return min(version_of(session.version), version_of(pyspark.__version__)) >= _SINCE[feature]


def since(feature: str) -> str:
    """The first version of Spark that has a feature."""
    return _text(_SINCE[feature])


def check_version(version: str) -> None:
    """Refuse a Spark that lacks more than can be done without."""
    if version_of(version) < OLDEST:
        raise OptionError(
            "Spark",
            f"must be {_text(OLDEST)} to {_text(NEWEST)}",
            version,
            f"Install it with pip install 'pyspark=={_text(NEWEST)}.*', or use --master none.",
        )


def version_of(text: str) -> tuple[int, int]:
    """A version as Spark writes it, without what comes after the second number."""
    found = re.match(r"(\d+)\.(\d+)", text)
    assert found is not None, text
    return int(found[1]), int(found[2])


def routed(frame: DataFrame, partitions: int, column: str) -> DataFrame:
    """The same rows, each in the partition whose number a column of ints has."""
    if has(frame.sparkSession, PARTITION_IDS):
        return frame.repartitionById(partitions, column)
    return routed_by_hash(frame, partitions, column)


def routed_by_hash(frame: DataFrame, partitions: int, column: str) -> DataFrame:
    """The same without partition ids: by a key for each number whose hash leads to its partition.

    It needs `spark.sql.adaptive.enabled=false`, else Spark may put partitions together.
    """
    keys = F.array(*(F.lit(key) for key in keys_of(partitions)))
    return frame.repartition(partitions, F.get(keys, F.col(column)))


@cache
def keys_of(partitions: int) -> tuple[int, ...]:
    """For each partition an int that `DataFrame.repartition` sends there.

    The search takes about as many hashes as partitions times the logarithm of their number.
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(_hash(key) % partitions, key)
        key += 1
    return tuple(found[number] for number in range(partitions))


def _hash(value: int) -> int:
    """Spark's hash of an int: Murmur3 of its four bytes, seed 42, as a signed number."""
    mixed = 42 ^ _rotated(value * 0xCC9E2D51, 15) * 0x1B873593 & _WORD
    mixed = (_rotated(mixed, 13) * 5 + 0xE6546B64 ^ 4) & _WORD
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def _rotated(word: int, bits: int) -> int:
    word &= _WORD
    return (word << bits | word >> 32 - bits) & _WORD


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def arrow_function(function: Callable[..., pa.Array], returns: pa.DataType) -> Any:
    """A function of Arrow arrays for Spark SQL; only where Spark has `ARROW_FUNCTIONS`."""
    from pyspark.sql.functions import arrow_udf

    return arrow_udf(function, from_arrow_type(returns, prefer_timestamp_ntz=True))


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of Spark in Arrow's types; times with a zone are in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of Arrow in Spark's types; times without a zone stay without one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
