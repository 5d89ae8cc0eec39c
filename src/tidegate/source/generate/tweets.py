"""Short messages with hashtags, one to several of which belong to each message."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.schema import TIME
from tidegate.source.generate.draw import Words, field, shares, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import joined
from tidegate.source.generate.span import STREAMS, Span, times
from tidegate.source.generate.workload import Workload
from tidegate.source.parameter import Parameters
from tidegate.source.protocol import Int64s

_MESSAGE, _PHRASES, _FIRST_TAG = 1, 2, 3
_TAGS = 3
_TAG_SHARES = (0.15, 0.5, 0.25, 0.1)
"""How often a message has none, one, two and three hashtags."""
_PHRASE_BITS = 12
_USER_BITS = 20
_WORDS = (
    "the a we they you it rain sun wind tide river bridge train bus ferry ticket home work "
    "school market coffee bread music game goal team match song light night morning evening "
    "today tomorrow late early again never always is was will can see hear wait run walk open "
    "close win lose new old big small good bad first last for with near over from to"
).split()

SCHEMA = pa.schema(
    [
        ("ts", TIME),
        ("user_id", pa.int64()),
        ("text", pa.string()),
        ("hashtags", pa.string()),
    ]
)


def tweets(parameters: Parameters) -> Workload:
    """Messages; `hashtags` are those of the text, different ones, with a space between them."""
    tags = Keys("hashtags", 5_000, 1.0, low=_TAGS)
    return Workload(Tweets, read_flow(parameters, 50.0, "2018-10-01T00:00:00Z", tags))


class Tweets(Span):
    """The columns of a range of messages."""

    FAMILY = 7
    SCHEMA = SCHEMA
    TIME = "ts"

    @cached_property
    def ts(self) -> pa.Array:
        return times(self.time_us)

    @cached_property
    def user_id(self) -> pa.Array:
        """Low ones more often: the product of two draws."""
        one = field(self._message, 0, _USER_BITS)
        two = field(self._message, 20, _USER_BITS)
        return pa.array(1 + (one * two >> _USER_BITS))

    @cached_property
    def text(self) -> pa.Array:
        """A phrase, then the hashtags."""
        ends = np.cumsum(1 + self._counts)
        pieces = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        first = ends - (1 + self._counts)
        pieces[first] = field(self._message, 40, _PHRASE_BITS)
        for place, (rows, tags) in enumerate(self._tags):
            pieces[first[rows] + 1 + place] = tags + (1 << _PHRASE_BITS)
        return joined(_text_pieces(self.flow.seed, self.flow.keys), pieces, ends)

    @cached_property
    def hashtags(self) -> pa.Array:
        """Pieces after the first of a row begin with a space."""
        keys = self.flow.keys
        ends = np.cumsum(self._counts)
        pieces = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        first = ends - self._counts
        for place, (rows, tags) in enumerate(self._tags):
            pieces[first[rows] + place] = tags + (keys if place else 0)
        return joined(_tag_pieces(keys), pieces, ends)

    @cached_property
    def _message(self) -> Words:
        return self.words(_MESSAGE)

    @cached_property
    def _counts(self) -> Int64s:
        """How many hashtags each message has."""
        return _tag_counts()[field(self._message, 52, 10)]

    @cached_property
    def _tags(self) -> list[tuple[Int64s, Int64s]]:
        """For each place in a message: the rows that have a hashtag there, and the hashtags."""
        counts, rows = self._counts, np.arange(self.stop - self.start)
        before: list[Int64s] = []
        found = []
        for place in range(_TAGS):
            more = np.flatnonzero(counts > place)
            counts, rows, before = counts[more], rows[more], [tags[more] for tags in before]
            tags = self.ranked(_FIRST_TAG + place, rows)
            for _ in before:
                tags = _moved(tags, before, self.flow.keys)
            before.append(tags)
            found.append((rows, tags))
        return found


def _moved(tags: Int64s, before: list[Int64s], keys: int) -> Int64s:
    """The tags, and the next ones where a message has them already."""
    taken = np.logical_or.reduce([tags == other for other in before])
    moved: Int64s = tags + taken
    moved[moved == keys] = 0
    return moved


@lru_cache(maxsize=1)
def _tag_counts() -> Int64s:
    return shares(10, _TAG_SHARES)


def _names(keys: int) -> list[str]:
    """Names of hashtags: pairs of words, with a number when all pairs are used."""
    count = len(_WORDS)
    names = []
    for key in range(keys):
        turn, pair = divmod(key, count * count)
        name = _WORDS[pair * 31 % count] + _WORDS[(pair // count + pair) % count].title()
        names.append(name if turn == 0 else f"{name}{turn}")
    return names


@lru_cache(maxsize=4)
def _tag_pieces(keys: int) -> pa.Array:
    names = _names(keys)
    return pa.array([*names, *(f" {name}" for name in names)])


@lru_cache(maxsize=4)
def _text_pieces(seed: int, keys: int) -> pa.Array:
    """Phrases of three to ten words, then hashtags."""
    draws = stream(seed, Tweets.FAMILY * STREAMS + _PHRASES)
    lengths = 3 + (draws.random(1 << _PHRASE_BITS) * 8).astype(np.int64)
    picks = (draws.random(int(lengths.sum())) * len(_WORDS)).astype(np.int64).tolist()
    phrases, used = [], 0
    for length in lengths.tolist():
        phrases.append(" ".join(_WORDS[pick] for pick in picks[used : used + length]))
        used += length
    return pa.array([*phrases, *(f" #{name}" for name in _names(keys))])
