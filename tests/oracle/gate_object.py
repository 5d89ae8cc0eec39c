"""The gate object, one tuple at a time: its sequence is a sort of all tuples, nothing cleverer."""

from __future__ import annotations

from dataclasses import dataclass, field

LOWEST, HIGHEST = float("-inf"), float("inf")


class Refused(Exception):
    """What the gate refuses as well."""


@dataclass
class PlainSource:
    position: int
    promise: float
    newest: float = LOWEST
    spoken: int = 0
    ended: bool = False


@dataclass
class PlainGate:
    """Tuples are (ts, position of the source, sequence in it, payload)."""

    disorder: int = 0
    sources: dict[str, PlainSource] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)
    tuples: list[tuple[int, int, int, object]] = field(default_factory=list)
    shown: float = LOWEST
    joined: int = 0
    oldest: int = 0
    began: dict[str, int] = field(default_factory=dict)

    def append(self, name: str, rows: list[tuple[int | None, object]]) -> tuple[list, list]:
        """Take rows of (ts, payload); give the late ones and those without a time back."""
        source = self.sources.get(name)
        if source is None or source.ended:
            raise Refused(name)
        late, rejected = [], []
        for ts, payload in rows:
            seq, source.spoken = source.spoken, source.spoken + 1
            if ts is None:
                rejected.append(payload)
                continue
            if ts < source.newest - self.disorder or ts < source.promise:
                late.append(payload)
            else:
                self.tuples.append((ts, source.position, seq, payload))
            source.newest = max(source.newest, ts)
        return late, rejected

    def frontier(self) -> float:
        reach = [
            HIGHEST if s.ended else max(s.newest - self.disorder, s.promise)
            for s in self.sources.values()
        ]
        flushed = max((t[0] + 1 for t in self.tuples), default=LOWEST)
        self.shown = max(self.shown, min(reach, default=flushed))
        return self.shown

    def ready(self) -> list[tuple[int, int, int, object]]:
        frontier = self.frontier()
        return sorted((t for t in self.tuples if t[0] < frontier), key=lambda t: t[:3])

    def next_ready(self, reader: str, most: int | None = None) -> list[object]:
        if reader not in self.readers:
            raise Refused(reader)
        start = self.readers[reader]
        taken = self.ready()[start : None if most is None else start + most]
        self.readers[reader] = start + len(taken)
        self.oldest = min(self.readers.values())
        return [t[3] for t in taken]

    def announce(self, name: str, promise: float | None = None) -> tuple[float, int]:
        promised = self.frontier() if promise is None else promise
        if promised < self.shown or promised == HIGHEST or name in self.sources:
            raise Refused(name)
        source = self.sources[name] = PlainSource(self.joined, promised)
        self.joined += 1
        return promised, source.position

    def end(self, name: str) -> None:
        if name not in self.sources:
            raise Refused(name)
        self.sources[name].ended = True

    def remove(self, name: str) -> None:
        if name not in self.sources:
            raise Refused(name)
        del self.sources[name]

    def announce_reader(self, name: str, at: str | None = None) -> None:
        if name in self.readers or (at is not None and at not in self.readers):
            raise Refused(name)
        start = self.oldest if at is None else max(self.readers[at] - 1, self.began.get(at, 0))
        self.readers[name] = self.began[name] = start
        self.oldest = min(self.oldest, start)

    def remove_reader(self, name: str) -> None:
        if name not in self.readers:
            raise Refused(name)
        del self.readers[name]
        self.oldest = min(self.readers.values(), default=self.oldest)
