"""Mappings that are kept entry by entry: beside real ones, through any operations and restores."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.operate.process.bucket import Bucket
from tidegate.operate.process import entry
from tidegate.operate.process.plain import encode
from tidegate.operate.process.stored_mapping import StoredMapping

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
KEYS: list[Any] = ["a", "b", "", 0, 1, 1.0, True, Decimal(1), -1, 2.5, np.float64(1), np.str_("a")]
KEYS += [None, b"a", (), (1, "a"), (1.0, np.str_("a")), frozenset({1, 2}), frozenset({2.0, 1})]
KEYS += [NOON, NOON.astimezone(timezone(timedelta(hours=1))), NOON.replace(tzinfo=None)]
KEYS += [date(2024, 1, 1), timedelta(seconds=1), 2**70, -(2**61), math.inf]
STRANGE: list[Any] = [time(1), (time(1), 1)]
"""Keys that are only found when all are loaded."""

KINDS: dict[str, Callable[[], Any]] = {
    "dict": dict,
    "ordered": OrderedDict,
    "counter": Counter,
    "default": lambda: defaultdict(list),
}
keys = st.sampled_from([*KEYS, *STRANGE])
numbers = st.integers(0, 3)


def same(one: Mapping[Any, Any], two: Mapping[Any, Any]) -> bool:
    """Equal in the order of the entries, and in the types of keys and values."""
    return encode(dict(one.items()), "one") == encode(dict(two.items()), "two")


ENTRY = entry.EntryNames.entry


def few_numbers(names: entry.EntryNames, key: Any) -> int | None:
    """Numbers that keys of all attributes share."""
    found = ENTRY(names, key)
    return None if found is None else 1 + found % 3


class Beside(RuleBasedStateMachine):
    """A mapping of an object, and one that is never stored: what is done to both gives the same."""

    collisions = False

    @initialize(kind=st.sampled_from(sorted(KINDS)))
    def start(self, kind: str) -> None:
        self.patch = pytest.MonkeyPatch()
        if self.collisions:
            self.patch.setattr(entry.EntryNames, "entry", few_numbers)
        self.real = KINDS[kind]()
        self.bucket = Bucket({"before": 1, "x": KINDS[kind](), "after": {"y": 2}})
        self.x = self.bucket.attributes["x"]

    def teardown(self) -> None:
        self.patch.undo()

    def both(self, action: Callable[[Any], Any]) -> None:
        """What an action gives, or raises, is the same for both."""
        outcomes = []
        for mapping in (self.real, self.x):
            try:
                outcomes.append(f"gave {action(mapping)!r}")
            except (KeyError, TypeError, ValueError) as error:
                outcomes.append(f"raised {error!r}")
        assert outcomes[0] == outcomes[1]

    @rule(key=keys)
    def ask(self, key: Any) -> None:
        self.both(lambda m: m[key])

    @rule(key=keys, default=st.none() | numbers)
    def get(self, key: Any, default: Any) -> None:
        self.both(lambda m: m.get(key, default))
        self.both(lambda m: key in m)

    @rule(key=keys, value=numbers)
    def put(self, key: Any, value: int) -> None:
        counts = isinstance(self.real, Counter)
        self.both(lambda m: m.__setitem__(key, value if counts else [value]))

    @rule(key=keys, value=numbers)
    def change_in_place(self, key: Any, value: int) -> None:
        self.both(lambda m: m.setdefault(key, [value]).append(value) if _holds_lists(m, key) else 0)

    @rule(key=keys, value=numbers)
    def set_once(self, key: Any, value: int) -> None:
        self.both(lambda m: m.setdefault(key, value))

    @rule(key=keys)
    def remove(self, key: Any) -> None:
        self.both(lambda m: m.__delitem__(key))

    @rule(key=keys, default=st.sampled_from([(), (None,), (1,)]))
    def pop(self, key: Any, default: tuple[Any, ...]) -> None:
        self.both(lambda m: m.pop(key, *default))

    @rule(first=st.booleans())
    def pop_item(self, first: bool) -> None:
        ordered = isinstance(self.real, OrderedDict)
        self.both(lambda m: m.popitem(last=not first) if ordered else m.popitem())

    @rule(news=st.dictionaries(keys, numbers, max_size=3), named=st.booleans())
    def update(self, news: dict[Any, int], named: bool) -> None:
        self.both(lambda m: m.update(news, **({"a": 1} if named else {})))

    @rule(pairs=st.lists(st.tuples(keys, numbers), max_size=3))
    def update_by_pairs(self, pairs: list[tuple[Any, int]]) -> None:
        self.both(lambda m: m.update(pairs))

    @rule()
    def clear(self) -> None:
        self.both(lambda m: m.clear())

    @rule()
    def count(self) -> None:
        self.both(lambda m: (len(m), bool(m)))

    @rule()
    def read_all(self) -> None:
        self.both(lambda m: [list(m), list(m.values()), list(m.items()), list(m.keys())])
        self.both(lambda m: type(m.copy()).__name__)

    @precondition(lambda self: isinstance(self.real, Counter))
    @rule()
    def count_up(self) -> None:
        self.both(lambda m: m.update("abca"))
        self.both(lambda m: [m.total(), sorted(map(str, m.elements())), m.most_common(1)[0][1]])

    @rule()
    def assign(self) -> None:
        """Another mapping takes the place of the old one, with some of its entries."""
        kept = [key for place, key in enumerate(self.real) if place % 2]
        for owner, mapping in (("real", self.real), ("x", self.x)):
            made = mapping.copy()
            made.clear()
            for key in reversed(kept):
                made[key] = mapping[key]
            setattr(self, owner, made)
        self.bucket.attributes["x"] = self.x

    @rule(whole=st.booleans(), merge=st.integers(0, 5))
    def restore(self, whole: bool, merge: int) -> None:
        """The batch ends: what changed is written, and the next one reads it."""
        self.bucket.attributes["x"] = self.x
        self.bucket.commit(merge)
        assert same(self.bucket.read(None)["x"], self.real)
        self.x = self.bucket.restore(None if whole else frozenset())["x"]
        assert isinstance(self.x, StoredMapping) or whole or self.has_strange_keys()

    def has_strange_keys(self) -> bool:
        return "datetime.time(" in repr(list(self.real))

    @invariant()
    def stays_beside(self) -> None:
        if hasattr(self, "x") and type(self.x) is type(self.real):
            assert same(self.x, self.real)


def _holds_lists(mapping: Any, key: Any) -> bool:
    return isinstance(mapping.get(key, []), list)


class BesideWithCollisions(Beside):
    collisions = True


TestBeside = Beside.TestCase
TestBesideWithCollisions = BesideWithCollisions.TestCase
