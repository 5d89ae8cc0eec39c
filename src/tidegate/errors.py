"""The errors of Tidegate as one tree; each message says where, what is required and what came.

::

    TidegateError
    ├── UserError            a mistake in the query, the options or the input: nothing was started
    │   ├── QueryError       the query does not say something that can be run
    │   │   └── NoAttributeError  a name that a stream or an expression does not have
    │   ├── OptionError      a command-line option or an argument has a value that cannot be used
    │   ├── SourceError      an input is missing, unreadable or of the wrong shape
    │   ├── CheckpointError  a checkpoint belongs to another query, or to another form of this one
    │   └── UnavailableError a part of the language that this version parses but does not run yet
    └── RunError             a failure while running: committed output stands, a restart continues
        ├── StateError       a segment or a manifest is damaged or missing
        ├── FencedError      another run has taken the checkpoint over
        ├── MemoryExceededError  a batch needs more memory than there is, however small it is cut
        ├── BrokenOffError   the run was aborted in the middle of a batch
        ├── SinkError        the output could not be written
        │   └── LostOutputError  a part of a committed batch is gone or damaged before it was seen
        ├── LostParcelsError tuples on their way between tasks are gone with their worker
        ├── TaskError        user code or an expression failed on a tuple
        └── GateError        a source broke a promise it made when it joined

Messages have one shape: ``<where>: <requirement>; got <actual>. <what to do next>``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

NO_WAY = "There is no way yet."
"""The remedy when no other way of writing gives what was asked for."""

LONGEST = 500
"""The most characters of the value that a message shows."""


class TidegateError(Exception):
    """The root of the tree; keeps the parts of the message as fields and survives pickling."""

    def __init__(
        self, where: str, requirement: str, got: str | None = None, remedy: str | None = None
    ) -> None:
        self.where = where
        self.requirement = requirement
        self.got = got
        self.remedy = remedy
        super().__init__(where, requirement, got, remedy)

    def __str__(self) -> str:
        text = f"{self.where}: {self.requirement}"
        if self.got is not None:
            text += f"; got {_short(self.got)}"
        text += "." if not text.endswith((".", "?")) else ""
        return f"{text} {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, str | None]:
        """The error as JSON values, to pass it through a file or socket."""
        return {
            "kind": type(self).__name__,
            "where": self.where,
            "requirement": self.requirement,
            "got": self.got,
            "remedy": self.remedy,
        }

    @staticmethod
    def from_dict(fields: Mapping[str, Any]) -> TidegateError:
        """The error from `to_dict`; an unknown kind becomes a RunError."""
        kinds = {kind.__name__: kind for kind in _below(TidegateError)}
        kind = kinds.get(fields["kind"], RunError)
        return kind(*(fields[name] for name in ("where", "requirement", "got", "remedy")))


def _below(kind: type[TidegateError]) -> Iterator[type[TidegateError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _short(got: str) -> str:
    """The actual value; a long one keeps its beginning and end."""
    return got if len(got) <= LONGEST else f"{got[: LONGEST - 50]} ... {got[-45:]}"


class UserError(TidegateError):
    """A mistake to fix before anything starts; the command line exits with 2."""


class QueryError(UserError):
    """The query cannot be run as written."""


class NoAttributeError(QueryError, AttributeError):
    """An unknown attribute of an object of the Python API; `hasattr` returns False."""


class OptionError(UserError):
    """An option or argument has an unusable value."""


class SourceError(UserError):
    """An input is missing, unreadable or of the wrong shape."""


class CheckpointError(UserError):
    """A checkpoint belongs to another query, or to another version of this one."""


class UnavailableError(UserError):
    """The language has it, but this version does not run it yet."""


class RunError(TidegateError):
    """A failure while running; the command line exits with 1."""


class StateError(RunError):
    """A segment or a manifest is damaged or missing."""


class FencedError(RunError):
    """Another run has taken over the checkpoint; this one has published nothing since."""


class MemoryExceededError(RunError):
    """Work on a batch needs more memory than is available."""


class BrokenOffError(RunError):
    """The run was aborted in the middle of a batch; nothing of that batch counts."""


class SinkError(RunError):
    """The output could not be written."""


class LostOutputError(SinkError):
    """A part of a committed batch was lost or damaged before it was published; the batch must run
    again.

    Sinks raise it in `publish`. Its remedy is for batches that cannot run again.
    """


class LostParcelsError(RunError):
    """Tuples in transit between tasks are lost or unreachable; their batch must run again."""


class TaskError(RunError):
    """User code or an expression failed on a tuple."""


class GateError(RunError):
    """A source broke a promise it made when it joined."""


def near(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Names similar to a misspelt one; the remedy of every unknown-name error."""
    names = list(known)
    if not names:
        return "There are none."
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else ".")
    return f"{likely(name, names, alike)} There are: {listed}".lstrip()


def likely(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """A question with the names most like a misspelt one; empty if none is `alike` enough."""
    lowered = {n.lower(): n for n in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=alike)
    return f"Did you mean {' or '.join(lowered[c] for c in close)}?" if close else ""
