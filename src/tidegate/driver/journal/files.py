"""The files of a journal, in the folder `journal` of a checkpoint.

``NNNNNNNN.jsonl`` has batches from that one on, a JSON object on each line, PER_FILE of them at
most; ``status.json`` is the newest status, ``requests.jsonl`` what people have asked of the query.
Only people read them: no state needs them, a run that cannot write them goes on, and they may be
deleted at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.json_text import json_text
from tidegate.state.files import OWNER_ONLY, Files
from tidegate.storage.whole_file import is_temporary, whole_file

if TYPE_CHECKING:
    from tidegate.driver.journal.record import BatchRecord

FOLDER = "journal"
STATUS = f"{FOLDER}/status.json"
REQUESTS = f"{FOLDER}/requests.jsonl"

ALIVE_S = 10.0
"""The time between two signs of life of an idle run."""

PER_FILE = 512
MOST_FILES = 40
"""Older files are deleted: about the newest 20,000 batches stay."""

_HEAD = b'{"batch": '
_NAME = re.compile(rf"{FOLDER}/(\d{{8,}})\.jsonl")


class JournalFiles:
    """Writes the journal of one run; holds the lines of the newest file."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._name = ""
        self._lines: list[bytes] = []

    def clean(self) -> None:
        """Remove half-written files of a run that was killed."""
        for name in self._files.names(FOLDER):
            if is_temporary(name):
                self._files.delete(name)

    def add(self, records: Iterable[BatchRecord]) -> None:
        """Append batches. A file is rewritten as a whole until it is full."""
        for record in records:
            if not self._name or len(self._lines) >= PER_FILE:
                self._begin(record.batch)
            self._lines.append(json_text(record.as_dict()).encode() + b"\n")
        if self._lines:
            self._put(self._name, b"".join(self._lines))

    def put_status(self, status: Mapping[str, Any]) -> None:
        self._put(STATUS, json_text(status).encode())

    def add_request(self, request: Mapping[str, Any]) -> None:
        """Append a request; all requests are kept. Costs a copy of all earlier ones."""
        before = read_whole(self._files, REQUESTS)
        self._put(REQUESTS, before + json_text(request).encode() + b"\n")

    def _begin(self, batch: int) -> None:
        """Begin a new file, and delete the oldest ones."""
        if self._lines:
            self._put(self._name, b"".join(self._lines))
        self._name, self._lines = f"{FOLDER}/{batch:08d}.jsonl", []
        for name in batch_files(self._files)[: -(MOST_FILES - 1)]:
            self._files.delete(name)

    def _put(self, name: str, data: bytes) -> None:
        if self._files.local:
            path = self._files.full(name)
            with whole_file(path, sync="nothing", parents=True, folder_mode=OWNER_ONLY) as file:
                file.write(data)
            return
        with self._files.create(name) as file:
            file.write(data)


def line_batch(line: bytes) -> int:
    """The number of a line's batch; every line begins with it."""
    return int(line[len(_HEAD) : line.index(b",")])


def read_status(files: Files) -> dict[str, Any] | None:
    """The newest status; None where no run has left one."""
    data = read_whole(files, STATUS)
    found: dict[str, Any] | None = json.loads(data) if data else None
    return found


def read_whole(files: Files, name: str) -> bytes:
    """What a file has; nothing where it was deleted meanwhile."""
    try:
        return bytes(files.buffer(name).to_pybytes())
    except FileNotFoundError:
        return b""


def batch_files(files: Files) -> list[str]:
    """Those with batches, the oldest first."""
    return sorted(filter(_NAME.fullmatch, files.names(FOLDER)), key=first_batch)


def first_batch(name: str) -> int:
    matched = _NAME.fullmatch(name)
    assert matched is not None, name
    return int(matched[1])
