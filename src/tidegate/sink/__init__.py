"""Where results go: each sink takes a batch in two steps, written before the commit, shown after.

`of` makes the sink that a URI names; `protocol` says what a sink of your own has to do.
"""

from os import PathLike, fspath

from tidegate.remote.scheme import REMOTE
from tidegate.sink.address import Address
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.call import CallSink
from tidegate.sink.console import ConsoleSink
from tidegate.sink.files import FileSink
from tidegate.sink.form import REFUSE
from tidegate.sink.memory import MemorySink, NewestSink
from tidegate.sink.protocol import Keep, Opening, PartWriter, Sink, Upserting
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.registry import of
from tidegate.sink.remote import RemoteSink

__all__ = [
    "BatchOutput",
    "CallSink",
    "ConsoleSink",
    "FileSink",
    "Keep",
    "MemorySink",
    "NewestSink",
    "Opening",
    "Part",
    "PartWriter",
    "Receipt",
    "RemoteSink",
    "Sink",
    "Upserting",
    "call",
    "console",
    "files",
    "memory",
    "of",
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
    given = {"format": format, "nonfinite": nonfinite}
    for name, value in given.items():
        address = address.with_parameter(name, name, value)
    return RemoteSink.at(address, None)


def memory(newest: bool = False) -> MemorySink:
    """Results kept in this process, for tests and notebooks.

    With `newest` only the newest row of each key: of a window and its group, or of the columns of
    DISTINCT ON. So `EMIT EVERY` gives a table with one row for each, that follows the stream.
    """
    return NewestSink() if newest else MemorySink()


def console() -> ConsoleSink:
    """Results printed as they are committed."""
    return ConsoleSink()


call = CallSink
"""Results given to a Python function, `function(table, batch)`, once per committed batch."""
