"""The input of a simulated course: rows of sources as files, in every format and arrangement."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from tests.property.steps import Line, table_of

FORMATS = ("parquet", "csv", "json")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class StreamData:
    """The sources of a stream, each a file; `folder` says that the stream is the folder.

    `spoilt` are the places of lines that cannot be read, by source; text has such.
    """

    name: str
    sources: tuple[tuple[Line, ...], ...]
    format: str
    folder: bool
    disorder_us: int
    spoilt: tuple[tuple[int, ...], ...]

    @property
    def can_grow(self) -> bool:
        """Whether its files can be followed while they are written: text, each named."""
        return self.format != "parquet" and not self.folder

    def paths(self) -> list[str]:
        return [f"/in/{self.name}/{i}.{self.format}" for i in range(len(self.sources))]

    def uris(self) -> str | list[str]:
        return f"/in/{self.name}" if self.folder else self.paths()

    def files(self) -> dict[str, bytes]:
        return {
            path: encoded(lines, self.format, spoilt)
            for path, lines, spoilt in zip(self.paths(), self.sources, self.spoilt, strict=True)
        }

    def tables(self) -> list[pa.Table]:
        return [table_of(lines) for lines in self.sources]

    @property
    def rows(self) -> int:
        return sum(map(len, self.sources))

    @property
    def rejected(self) -> int:
        return sum(map(len, self.spoilt))


def encoded(lines: Sequence[Line], format: str, spoilt: Sequence[int] = ()) -> bytes:
    """Rows as the bytes of a file."""
    if format == "parquet":
        out = io.BytesIO()
        pq.write_table(table_of(lines), out, row_group_size=9)
        return out.getvalue()
    texts = [_csv(line) if format == "csv" else _json(line) for line in lines]
    for place in sorted(spoilt, reverse=True):
        texts.insert(place, "never,1,2" if format == "csv" else '{"ts": "never", "k": 1, "v": 2}')
    head = ["ts,k,v"] if format == "csv" else []
    return "".join(f"{text}\n" for text in head + texts).encode()


def _csv(line: Line) -> str:
    return ",".join([_time(line[0]), *("" if x is None else str(x) for x in line[1:])])


def _json(line: Line) -> str:
    return json.dumps({"ts": _time(line[0]), "k": line[1], "v": line[2]})


def _time(ts: int) -> str:
    return (_EPOCH + timedelta(microseconds=ts)).isoformat(timespec="microseconds")


def drawn(
    chance: random.Random, name: str, sources: Sequence[Sequence[Line]], disorder_us: int
) -> StreamData:
    """A stream over rows; with disorder some of them come too early or too late."""
    given = [_shaken(chance, lines) if disorder_us else tuple(lines) for lines in sources]
    texts = all(_is_typed(lines) for lines in given)
    format = chance.choice(FORMATS) if texts else "parquet"
    spoilt: list[tuple[int, ...]] = [()] * len(given)
    if format != "parquet" and chance.random() < 0.3:
        spoilt = [
            tuple(chance.choices(range(1, len(lines)), k=chance.randint(0, 2))) for lines in given
        ]
    return StreamData(name, tuple(given), format, chance.random() < 0.4, disorder_us, tuple(spoilt))


def _is_typed(lines: Sequence[Line]) -> bool:
    """Whether the types of the columns can be told from text: values are there early."""
    head = lines[:8]
    return len(lines) > 8 and all(any(line[i] is not None for line in head) for i in (1, 2))


def _shaken(chance: random.Random, lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple((ts + chance.choice((0, 0, 0, -3, -12, 2)), k, v) for ts, k, v in lines)


def pieces(chance: random.Random, content: bytes) -> list[bytes]:
    """A text file as it is written: first some lines, then bytes cut anywhere."""
    first = sum(len(line) for line in content.splitlines(keepends=True)[:12])
    rest = content[first:]
    cuts = sorted(chance.randint(0, len(rest)) for _ in range(chance.randint(1, 5)))
    edges = zip([0, *cuts], [*cuts, len(rest)], strict=True)
    return [content[:first], *(rest[a:b] for a, b in edges)]
