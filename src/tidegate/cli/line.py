"""Lines on standard error: messages and logs, as text or, with `--log-format json`, as JSON.

In JSON every line is one object, also lines from libraries and sinks. docs/metrics.md lists its
fields. Spark's JVM bypasses Python and follows its own settings.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, TextIO

import click

from tidegate.clock import utc_now
from tidegate.errors import TidegateError
from tidegate.json_text import json_text

if TYPE_CHECKING:  # commands that run no query start without the engine
    from tidegate.driver.report.metrics import Summary

TEXT, JSON = FORMATS = ("text", "json")
_NAME = "tidegate"
_BEGINNING = '{"time": '


class _LineForm:
    """How this command's lines are written."""

    form = TEXT


@contextmanager
def lines_as_text() -> Iterator[None]:
    """Writes lines as text in the block, until `use` changes it."""
    stderr = sys.stderr
    try:
        yield
    finally:
        if _LineForm.form == JSON:
            logging.captureWarnings(False)
            _LineForm.form, sys.stderr = TEXT, stderr


def use(form: str) -> None:
    """Sets the format of lines."""
    if form == JSON:
        _LineForm.form, sys.stderr = JSON, JsonStream(sys.stderr)
        logging.captureWarnings(True)


def say(message: str, level: int = logging.INFO, title: str = f"{_NAME}: ", **fields: Any) -> None:
    """A message to the user; as text it begins with `title` and omits `fields`."""
    if _LineForm.form == JSON:
        click.echo(_object(utc_now(), level, _NAME, message, **fields), err=True)
    else:
        click.echo(f"{title}{message}", err=True)


def say_error(error: object) -> None:
    """The error that ends a command; in JSON with its fields, if it is a Tidegate error."""
    parts: dict[str, Any] = {}
    if isinstance(error, TidegateError):
        parts["error"] = error.to_dict()
    say(str(error), logging.ERROR, **parts)


def say_summary(summary: Summary) -> None:
    """The summary at the end of a run; in JSON one object, as `--summary` writes it."""
    if _LineForm.form == JSON:
        say(summary.text().partition("\n")[0], summary=summary.as_dict())
    else:
        say(summary.text(), title="")


def log_to_stderr(level: str) -> None:
    """Sends logs from a level on to standard error."""
    handler = LogHandler()
    if _LineForm.form == JSON:
        handler.setFormatter(_JsonFormatter())
    logging.basicConfig(
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        handlers=[handler],
    )
    # At level debug Py4J writes every call, and first of all the token of its gateway.
    logging.getLogger("py4j").setLevel(max(logging.INFO, logging.getLogger().level))


class LogHandler(logging.StreamHandler[TextIO]):
    """Logs to the current standard error, which a live view may replace at any time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class JsonStream(io.TextIOBase):
    """A text stream that turns lines into JSON objects, except lines that already are."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()
        self._begun = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in filter(None, lines):
                if not line.startswith(_BEGINNING):
                    line = _object(utc_now(), logging.INFO, "stderr", line)
                self._stream.write(f"{line}\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        failure = {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return _object(at, record.levelno, record.name, record.getMessage(), **failure)


def _object(at: datetime, level: int, logger: str, message: str, **fields: Any) -> str:
    time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = logging.getLevelName(level).lower()
    return json_text({"time": time, "level": name, "logger": logger, "message": message, **fields})
