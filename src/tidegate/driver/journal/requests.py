"""Notes what people have asked of a query, and what became of it, in its checkpoint."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tidegate.clock import utc_now
from tidegate.driver.journal.files import JournalFiles
from tidegate.errors import TidegateError

_log = logging.getLogger(__name__)


class RequestLog:
    """The audit log of a run; without a checkpoint nothing is noted. Any thread may note."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._files: JournalFiles | None = None
        self._lock = threading.Lock()

    def keep(self, files: JournalFiles) -> None:
        """Have requests written from now on."""
        self._files = files

    def note(self, question: Mapping[str, Any], outcome: str) -> None:
        """Note one; a file that cannot be written is logged, and refuses nothing."""
        if self._files is None:
            return
        at = self._now().isoformat(timespec="milliseconds")
        try:
            with self._lock:
                self._files.add_request({"at": at, "by": "ctl", **question, "outcome": outcome})
        except (OSError, TidegateError) as error:
            _log.warning("a request is not in the journal: %s", error)
