"""Where results go. A sink writes a batch before its commit and shows it after.

`of` makes the sink that a URI names; `protocol` says what a sink of your own has to do.
"""

from collections.abc import Sequence
from os import PathLike, fspath
from urllib.parse import quote

from tidegate.remote.scheme import REMOTE
from tidegate.sink.address import Address
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.call import CallSink
from tidegate.sink.console import ConsoleSink
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.form import REFUSE
from tidegate.sink.folder.remote import RemoteSink
from tidegate.sink.kafka.sink import KafkaSink
from tidegate.sink.lake.sink import LakeSink
from tidegate.sink.memory import MemorySink, NewestSink
from tidegate.sink.postgres import PostgresSink
from tidegate.sink.protocol import Keep, Opening, PartWriter, Sink, Upserting
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.registry import of

__all__ = [
    "BatchOutput",
    "CallSink",
    "ConsoleSink",
    "FileSink",
    "KafkaSink",
    "Keep",
    "LakeSink",
    "MemorySink",
    "NewestSink",
    "Opening",
    "Part",
    "PartWriter",
    "PostgresSink",
    "Receipt",
    "RemoteSink",
    "Sink",
    "Upserting",
    "call",
    "console",
    "delta",
    "files",
    "iceberg",
    "kafka",
    "memory",
    "of",
    "postgres",
]


def files(
    path: str | PathLike[str], format: str = "parquet", nonfinite: str = REFUSE
) -> FileSink | RemoteSink:
    """Results as files: one `batch=NNNNNNNN` folder per batch below `path`, a path or a URI.

    JSON has no NaN and no infinities. They end the run before their batch is committed; with
    `nonfinite="text"` they are written as "NaN", "Infinity" and "-Infinity".
    """
    address = Address.of_folder(fspath(path), "sink")
    if address.scheme not in REMOTE:
        return FileSink(path, format, nonfinite=nonfinite)
    return RemoteSink.at(address.with_given(format=format, nonfinite=nonfinite), None)


def delta(path: str | PathLike[str], append: bool = False) -> LakeSink:
    """Results as a table of Delta Lake: a folder, or s3://bucket/path; needs `tidegate[delta]`.

    A new checkpoint needs a table that no other one has made, unless it is to `append` to it.
    """
    from tidegate.sink.lake.delta import DeltaSink

    place = fspath(path)
    uri = f"delta+{place}" if place.lower().startswith("s3://") else f"delta:{quote(place)}"
    address = Address.parse(uri, "sink.delta").with_given(append="true" if append else None)
    return DeltaSink.at(address, None)


def iceberg(
    catalog: str | PathLike[str],
    table: str,
    append: bool = False,
    *,
    warehouse: str | None = None,
    name: str | None = None,
) -> LakeSink:
    """Results as a table of Iceberg, `namespace.table`; needs `tidegate[iceberg]`.

    The catalog is one of pyiceberg's configuration, by its name, or an SQLite file, by its path:
    then data is in `warehouse`, a folder or s3://bucket/path, and its `name` in the file is
    `default` unless said otherwise. `append` is as for `delta`.
    """
    from tidegate.sink.lake.iceberg import IcebergSink

    said = {"table": table, "warehouse": warehouse, "name": name}
    given = {n: value for n, value in said.items() if value is not None}
    place = quote(fspath(catalog))
    address = Address(f"iceberg:{place}", "iceberg", place, given, "sink.iceberg")
    return IcebergSink.at(address.with_given(append="true" if append else None), None)


def kafka(
    uri: str,
    *,
    key: str | Sequence[str] | None = None,
    upsert: bool = False,
    append: bool = False,
    **more: str | int,
) -> KafkaSink:
    """Results as records of a topic, exactly once for consumers of committed records.

    `uri` is `kafka://host:port/topic`. `key` names the columns of the key; with `upsert` the key
    follows from the query, and the newest record of each key counts. `append` writes behind what a
    topic has. `more` are the other parameters of such a URI: `format`, `registry`, `subject`,
    `partitions`, `partition`, `late`, `rejected`, `nonfinite`, `timeout`, `config`.
    """
    address = Address.parse(uri, "sink").with_given(
        key=key if key is None or isinstance(key, str) else ",".join(key),
        upsert="yes" if upsert else None,
        append="yes" if append else None,
        **{name: str(value) for name, value in more.items() if value is not None},
    )
    return KafkaSink.at(address, None)


def memory(newest: bool = False) -> MemorySink:
    """Results kept in this process, for tests and notebooks.

    With `newest` only the newest row of each key: of a window and its group, or of the columns of
    DISTINCT ON. So `EMIT EVERY` gives a table with one row for each, that follows the stream.
    """
    return NewestSink() if newest else MemorySink()


def console() -> ConsoleSink:
    """Results printed as they are committed."""
    return ConsoleSink()


def postgres(uri: str, table: str | None = None, newest: bool = False) -> PostgresSink:
    """Results as rows of a table of Postgres, `postgresql://user@host:port/database?table=name`.

    With `newest` the table has one row for each key, as `memory(newest=True)`. A password comes
    from PGPASSWORD, ~/.pgpass or PGSERVICE, and never stands in the URI.
    """
    newest_text = "true" if newest else None
    address = Address.parse(uri, "sink").with_given(table=table, newest=newest_text)
    return PostgresSink.at(address, None)


call = CallSink
"""Results given to a Python function, `function(table, batch)`, once per committed batch."""
