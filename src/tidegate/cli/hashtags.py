"""Under which hashtags "rain ... wind ... tide" is said most often, within or across tweets.

An operator of one's own with its state by hashtag, and a window over what it finds. A tweet with
several hashtags goes to the objects of all of them. Run it: python FILE [MASTER]
"""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tidegate as tg

WORDS = ("rain", "wind", "tide")
TWEETS = "generator:tweets?rows=120000&rate=40&keys=300&seed=2019"


class Sequences(tg.Process):
    """Says each time the words have come in their order in the tweets of a hashtag."""

    output = {"hashtag": "string", "times": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.next = self.state.map("next")
        self.times = self.state.map("times")

    def on_tuple(self, tweet: Any, hashtags: list[str]) -> Iterator[dict[str, Any]]:
        words = tweet.text.split()
        for hashtag in hashtags:
            at = self.next.get(hashtag, 0)
            for word in words:
                if word == WORDS[at]:
                    at += 1
                    if at == len(WORDS):
                        at = 0
                        self.times[hashtag] = self.times.get(hashtag, 0) + 1
                        yield {"hashtag": hashtag, "times": self.times[hashtag]}
            self.next[hashtag] = at


def hashtags_of(tweets: pa.Table) -> pa.Array:
    return pc.split_pattern(tweets["hashtags"], " ")


def sequences(session: tg.Session) -> tg.Stream:
    tweets = session.stream(TWEETS, time="ts", name="tweets")
    return tweets.where(tg.col("hashtags") != "").process(Sequences, keys=hashtags_of)


def query(session: tg.Session) -> tg.Stream:
    often = sequences(session).window("10 minutes", slide="2 minutes").group_by("hashtag")
    return often.agg(found=tg.count(), so_far=tg.max("times")).top(10, by="found")


if __name__ == "__main__":
    session = tg.Session(master=sys.argv[1] if len(sys.argv) > 1 else "none")
    query(session).start(sink=tg.sink.console()).wait()
