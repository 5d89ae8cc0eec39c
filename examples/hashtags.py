"""An operator of one's own: how often "rain ... wind ... tide" was said under each hashtag.

Shows: a Process with its state per hashtag; tweets with several hashtags, which go to the objects
       of all of them; and that the rows are the same when instances come and go meanwhile.
Run:   python examples/hashtags.py
"""

import sys

import pyarrow.compute as pc

import tidegate as tg

WORDS = ("rain", "wind", "tide")
TWEETS = "generator:tweets?rows=30000&rate=50&keys=200"


class Sequences(tg.Process):
    """Counts the words in their order, within a tweet or across the tweets of a hashtag.

    There is one object per bucket of hashtags, so the state is by hashtag.
    """

    output = {"hashtag": "string", "times": "bigint"}  # noqa: RUF012

    def __init__(self):
        self.next = {}
        self.times = {}

    def on_tuple(self, tweet, hashtags):
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


def hashtags_of(tweets):
    """The keys of every tweet, as a column of lists."""
    return pc.split_pattern(tweets["hashtags"], " ")


def main(master: str = "none") -> None:
    session = tg.Session(master=master)
    tweets = session.stream(TWEETS, time="ts", name="tweets")
    tagged = tweets.where(tg.col("hashtags") != "")
    found = tagged.process(Sequences, keys=hashtags_of)
    found.start(sink=tg.sink.console(), instances=2, batch_rows=5_000, switches={2: 4, 4: 1}).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
