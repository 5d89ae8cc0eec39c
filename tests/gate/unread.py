"""A source for tests of the gate, which looks at times and never reads rows."""

from __future__ import annotations

from tidegate.connector import Reader, Source


class UnreadSource(Source):
    """Has event times and no rows to hand out."""

    def reader(self, start: int, stop: int) -> Reader:
        raise AssertionError("the gate reads no rows")
