"""Where results go: each sink takes a batch in two steps, staged before the commit, shown after."""

from tidegate.sink.console import ConsoleSink
from tidegate.sink.files import FileSink
from tidegate.sink.memory import CallSink, MemorySink
from tidegate.sink.protocol import Output, Sink

__all__ = [
    "CallSink",
    "ConsoleSink",
    "FileSink",
    "MemorySink",
    "Output",
    "Sink",
    "call",
    "console",
    "files",
    "memory",
]


def files(path: str, format: str = "parquet") -> FileSink:
    """Results as files: one `batch=NNNNNNNN` folder per batch below `path`."""
    return FileSink(path, format)


def memory() -> MemorySink:
    """Results kept in this process, for tests and notebooks."""
    return MemorySink()


def console() -> ConsoleSink:
    """Results printed as they are committed."""
    return ConsoleSink()


call = CallSink
"""Results given to a Python function, `function(table, batch)`, once per committed batch."""
