"""Short messages with hashtags, one to several of which belong to each message."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Words, field, mixed, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import joined
from tidegate.source.generate.span import STREAMS, Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_MESSAGE, _PHRASES, _TAG = range(1, 4)
_LEAST_TAGS = 3
_SETS = 8
"""Sets of hashtags per first hashtag: none at all, it alone, four with another, two with two."""
_SET_OF_16 = np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7], np.int64)
_PHRASE_BITS = 12
_USER_BITS = 20
_WORDS = (
    "the a we they you it rain sun wind tide river bridge train bus ferry ticket home work "
    "school market coffee bread music game goal team match song light night morning evening "
    "today tomorrow late early again never always is was will can see hear wait run walk open "
    "close win lose new old big small good bad first last for with near over from to"
).split()


def tweets(parameters: Parameters) -> SpanGenerator:
    """Messages; `hashtags` are those of the text, different ones, with a space between them."""
    tags = Keys("hashtags", 5_000, 1.0, low=_LEAST_TAGS, high=100_000)
    return SpanGenerator(TweetSpan, read_flow(parameters, 50.0, "2018-10-01T00:00:00Z", tags))


class TweetSpan(TimedSpan):
    """The columns of a range of messages."""

    FAMILY = 7

    @column(pa.int64())
    def user_id(self) -> Column:
        """Low ones more often: the product of two draws."""
        one = field(self._message, 0, _USER_BITS)
        two = field(self._message, 20, _USER_BITS)
        return 1 + (one * two >> _USER_BITS)

    @column(pa.string())
    def text(self) -> pa.Array:
        """A phrase, then the hashtags."""
        pieces = np.empty((self.stop - self.start, 2), np.int64)
        pieces[:, 0] = field(self._message, 40, _PHRASE_BITS)
        pieces[:, 1] = self._set + (1 << _PHRASE_BITS)
        return joined(_text_pieces(self.flow.seed, self.flow.keys), pieces)

    @column(pa.string())
    def hashtags(self) -> pa.Array:
        return _sets(self.flow.keys).take(pa.array(self._set))

    @cached_property
    def _message(self) -> Words:
        return self.words(_MESSAGE)

    @cached_property
    def _set(self) -> Int64s:
        """Which set of hashtags a message has: its first one follows the Zipf law."""
        sets: Int64s = self.ranked(_TAG) * _SETS + _SET_OF_16[field(self._message, 52, 4)]
        return sets


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
def _sets(keys: int) -> pa.Array:
    """The sets of all hashtags, one hashtag after the other: those that go together stay the same.

    Low numbers, which are frequent without drift, are also more often among the others.
    """
    names = _names(keys)
    others = np.arange(keys * _SETS * 2, dtype=np.int64)
    near = field(mixed(others, 0), 0, 20) * field(mixed(others, 1), 0, 20) >> 20
    second, third = (near * keys >> 20).reshape(2, keys, _SETS).tolist()
    texts = []
    for key, name in enumerate(names):
        texts += ["", name]
        for place in range(2, _SETS):
            tags = [key]
            for other in (second[key][place], third[key][place])[: 1 if place < 6 else 2]:
                while other in tags:
                    other = (other + 1) % keys
                tags.append(other)
            texts.append(" ".join(names[tag] for tag in tags))
    return pa.array(texts)


@lru_cache(maxsize=4)
def _text_pieces(seed: int, keys: int) -> pa.Array:
    """Phrases of three to ten words, then sets of hashtags."""
    draws = stream(seed, TweetSpan.FAMILY * STREAMS + _PHRASES)
    lengths = 3 + (draws.random(1 << _PHRASE_BITS) * 8).astype(np.int64)
    picks = (draws.random(int(lengths.sum())) * len(_WORDS)).astype(np.int64).tolist()
    phrases, used = [], 0
    for length in lengths.tolist():
        phrases.append(" ".join(_WORDS[pick] for pick in picks[used : used + length]))
        used += length
    tags = pc.replace_substring_regex(_sets(keys), "([^ ]+)", r" #\1")
    return pa.concat_arrays([pa.array(phrases), pc.replace_substring(tags, "  ", " ")])
