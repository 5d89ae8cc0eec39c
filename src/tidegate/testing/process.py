"""Records the calls of a user's operator: who called which bucket's object, and in what order."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.operate.process.definition import CALLS, Process

_METHODS = ("on_tuple", "process", "on_frontier")


@dataclass(frozen=True)
class Visit:
    """One call of a bucket's object: by whom, and where in the total order.

    A call for a batch has the time of its last tuple, with src and seq 0; a timer comes after all
    tuples of its time. `alone` is False when another call of the same bucket was running.
    """

    bucket: int
    process: int
    thread: int
    method: str
    ts: int
    src: int
    seq: int
    alone: bool

    @property
    def place(self) -> tuple[int, int, int]:
        return self.ts, self.src, self.seq


@dataclass(frozen=True)
class Watched:
    """A factory around another; each call of its objects adds a line to a file for the bucket.

    It pickles if the other factory does, and works in any process that sees the folder. Results
    and states of the objects stay the same.
    """

    factory: Callable[[], Process]
    folder: str

    @property
    def __name__(self) -> str:
        return getattr(self.factory, "__name__", "Watched")

    def __call__(self) -> Process:
        made = self.factory()
        kind = type(made)
        if made.mergeable:
            raise ValueError(
                f"Watched: is for objects that have a bucket; got {kind.__name__}, which is "
                "mergeable. Use check_process."
            )
        wrapped = {m: _recorded(m, self.folder) for m in _METHODS if hasattr(kind, m)}
        made.__class__ = type(kind.__name__, (kind,), wrapped)
        return made


def visits(folder: str) -> dict[int, list[Visit]]:
    """The calls recorded so far, by bucket, in the order in which they happened."""
    found = {}
    for path in sorted(Path(folder).glob("bucket-*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        read = [Visit(**json.loads(line)) for line in lines]
        found[read[0].bucket] = read
    return found


def disorder(seen: dict[int, list[Visit]]) -> list[tuple[Visit, Visit]]:
    """Calls that overlapped another, or were out of order; empty for a run without replays."""
    wrong = []
    for calls in seen.values():
        wrong += [(call, call) for call in calls if not call.alone]
        wrong += [(one, two) for one, two in itertools.pairwise(calls) if two.place <= one.place]
    return wrong


def _recorded(method: str, folder: str) -> Callable[..., Any]:
    def call(self: Process, *arguments: Any) -> Any:
        calls = vars(self)[CALLS]
        Path(folder).mkdir(parents=True, exist_ok=True)
        path = Path(folder) / f"bucket-{calls.bucket:05d}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            alone = _locked(file.fileno())
            ts, src, seq = calls.trigger
            who = (calls.bucket, os.getpid(), threading.get_ident())
            file.write(json.dumps(vars(Visit(*who, method, ts, src, seq, alone))) + "\n")
            file.flush()
            made = getattr(super(type(self), self), method)(*arguments)
            return list(made) if hasattr(made, "__next__") else made

    return call


def _locked(file: int) -> bool:
    """Lock a file until it is closed; False where another call holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
