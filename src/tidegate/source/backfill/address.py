"""Takes `HISTORY THEN TOPIC UNTIL TIME` apart, and refuses seams with a gap or with duplicates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from tidegate.calendar.microsecond import read_us, time_text
from tidegate.errors import SourceError
from tidegate.remote.scheme import scheme_of, shown

FROM, FROM_HISTORY, LATEST = "from", "history", "latest"
_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")

_THEN = re.compile(r"(?:^|\s)THEN(?:\s|$)")
_UNTIL = re.compile(r"\sUNTIL(?:\s|$)")
_EXAMPLE = "FROM 'delta:hist' THEN 'kafka://localhost:9092/rides?from=history'"


@dataclass(frozen=True)
class BackfillAddress:
    """The URIs of the history and of the topic, and the event time that separates them, if any.

    Without `until_us` offsets separate them: those in the history, or those in the topic's URI.
    """

    history: str
    topic: str
    until_us: int | None = None

    @staticmethod
    def parse(text: str, where: str) -> BackfillAddress:
        """SourceError where it is not a history and a topic, or does not say where they meet."""
        pieces = _THEN.split(text)
        history, rest = pieces[0].strip(), pieces[-1]
        topic, *until = (piece.strip() for piece in _UNTIL.split(rest))
        if len(pieces) != 2 or len(until) > 1 or not history or not topic:
            must = "THEN stands once, between a history and a topic"
            raise SourceError(where, must, shown(text), f"Write {_EXAMPLE}.")
        found = BackfillAddress(history, topic, _time_us(until[0], where) if until else None)
        found._check_places(where)
        found._check_seam(where)
        return found

    @property
    def start(self) -> str | None:
        """The parameter `from` of the topic's URI."""
        query = self.topic.partition("?")[2]
        return dict(parse_qsl(query, keep_blank_values=True)).get(FROM)

    @property
    def topic_alone(self) -> str:
        """The topic's URI without `from=history`, which only this module understands."""
        place, _, query = self.topic.partition("?")
        kept = [p for p in query.split("&") if p and p != f"{FROM}={FROM_HISTORY}"]
        return f"{place}?{'&'.join(kept)}" if kept else place

    @property
    def words(self) -> str:
        """Where the two meet, in words."""
        if self.until_us is not None:
            time = time_text(self.until_us)
            return f"the history counts before {time}, the topic from then on"
        if self.start == FROM_HISTORY:
            return "the topic goes on after the last offset of each partition in the history"
        return f"all of the history, then the topic from the offsets {self.start}"

    def _check_places(self, where: str) -> None:
        if scheme_of(self.topic) != "kafka":
            remedy = "Write THEN 'kafka://host:port/topic'."
            raise SourceError(where, "a topic follows THEN", shown(self.topic), remedy)
        scheme = scheme_of(self.history) or "file"
        if scheme in ("kafka", "generator", "postgresql", "postgres", "memory", "frame", "table"):
            raise SourceError(
                where,
                "a history must be files, or a table of Delta Lake or Iceberg",
                shown(self.history),
                f"Write its rows to one of these first, then {_EXAMPLE}.",
            )

    def _check_seam(self, where: str) -> None:
        start = self.start
        if self.until_us is not None and start == FROM_HISTORY:
            raise SourceError(
                where,
                "UNTIL and from=history both say where the topic goes on",
                "both",
                "Leave UNTIL out: the offsets in the history are exact.",
            )
        if start == LATEST:
            raise SourceError(
                where,
                "a topic that follows a history must begin where that ends",
                f"from={LATEST}",
                "Write from=history, or UNTIL 'TIME' and no from.",
            )
        by_offset = start is not None and (start == FROM_HISTORY or _OFFSETS.fullmatch(start))
        if self.until_us is None and not by_offset:
            raise SourceError(
                where,
                "it must be said where the topic goes on",
                "no from" if start is None else f"from={start} without UNTIL",
                "Write from=history, if the history has the columns _partition and _offset, "
                "offsets as from=0:1200,1:800, or UNTIL 'TIME'.",
            )


def backfill_text(history: str, topic: str, until: str | None = None) -> str:
    """A history and a topic as one text, for plans and --stream; `parse` reads it."""
    return f"{history} THEN {topic}" + ("" if until is None else f" UNTIL {until}")


def is_backfill(uri: str) -> bool:
    """Whether a URI of a stream is a history and a topic."""
    return _THEN.search(uri) is not None


def places_of(uri: str) -> Sequence[str]:
    """The URIs that a stream's URI consists of: itself, or those of history and topic."""
    if not is_backfill(uri):
        return (uri,)
    found = BackfillAddress.parse(uri, "stream")
    return found.history, found.topic


def _time_us(text: str, where: str) -> int:
    try:
        return read_us(text)
    except ValueError:
        remedy = "Write it in ISO 8601, as UNTIL '2024-01-31T12:00:00Z'."
        raise SourceError(where, "UNTIL must be a time", text or "nothing", remedy) from None
