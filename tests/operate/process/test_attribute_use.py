"""What a class does with its mappings, and which of them are therefore read as a whole."""

from __future__ import annotations

import copy
import functools
import json
import pickle
import re
import types
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pytest

from tests.operate.process.stream import run, spec_of
from tidegate.operate.process.advance import Process
from tidegate.operate.process.attribute_use import read_whole

GIVEN: list[Any] = []


def kept(mapping: Any) -> Any:
    GIVEN.append(mapping)
    return mapping


class Method:
    """Each of these functions is the one method of a class with the mappings x and y."""

    def by_key(self: Any, key: Any) -> Any:
        self.x[key] = self.x[key] + self.y.get(key, 0)
        self.x[key] += 1
        self.y[key].append(self.x)
        del self.x[key]
        return key in self.x or key not in self.y

    def by_methods(self: Any, key: Any) -> Any:
        self.x.setdefault(key, []).append(1)
        self.x.update({key: 1})
        self.y.pop(key, None)
        self.y.clear()
        return max(self.x.values(), key=self.y.get), self.x.popitem(), self.y.copy()

    def by_walking(self: Any, key: Any) -> Any:
        for one in self.x:
            yield one, key
        yield from self.y
        yield [y for y in self.y if y]
        yield (
            sorted(self.x.items()),
            len(self.x),
            list(self.y),
            {**self.y},
            [*self.x],
            dict(**self.y),
        )

    def by_truth(self: Any, key: Any) -> Any:
        while self.x and key:
            if not self.y or not (self.x or key):
                return 1 if self.x else 2
        return [k for k in (1, 2) if self.y and k]

    def by_assigning(self: Any, key: Any) -> None:
        self.x = {k: v for k, v in self.x.items() if v}
        self.x, self.y = {}, {}
        del self.y

    def by_variable(self: Any, key: Any) -> Any:
        x = self.x
        x[key] = 1
        y = self.y
        return x.get(key), len(x), y

    def by_rebound_variable(self: Any, key: Any) -> None:
        x = self.x
        if key:
            x = {}
        x[key] = 1

    def by_captured_variable(self: Any, key: Any) -> Any:
        x = self.x
        return lambda: x[key]

    def as_argument(self: Any, key: Any) -> Any:
        return json.dumps(self.x), self.y[key]

    def as_key_word(self: Any, key: Any) -> Any:
        return sorted([key], key=self.x.get), json.dumps(obj=self.y)

    def as_result(self: Any, key: Any) -> Any:
        return self.x

    def as_text(self: Any, key: Any) -> Any:
        return f"{self.x}"

    def as_part(self: Any, key: Any) -> Any:
        return {"x": self.x}, [self.y]

    def as_operand(self: Any, key: Any) -> Any:
        return self.x | {key: 1}, self.y == {}

    def as_other_truth(self: Any, key: Any) -> Any:
        return (self.x or self.y) and key

    def as_left_of_in(self: Any, key: Any) -> Any:
        return self.x in [key], key in self.y in [key]

    def as_type(self: Any, key: Any) -> Any:
        return type(self.x), isinstance(self.y, dict)

    def in_place(self: Any, key: Any) -> None:
        self.x |= {key: 1}

    def by_other_method(self: Any, key: Any) -> Any:
        return self.x.__len__(), self.y.move_to_end(key)

    def by_own_function(self: Any, key: Any) -> Any:
        len = kept
        return len(self.x), list(self.y)

    def by_matching(self: Any, key: Any) -> Any:
        match self.x:
            case {"a": 1}:
                return key
        return self.y.get(key)

    def of_the_class(self: Any, key: Any) -> Any:
        return type(self).__name__, self.x[key], super(Process, self).__init__()

    def itself(self: Any, key: Any) -> Any:
        return kept(self)

    def by_name(self: Any, key: Any) -> Any:
        return getattr(self, key)

    def all_attributes(self: Any, key: Any) -> Any:
        return self.__dict__

    def all_variables(self: Any, key: Any) -> Any:
        return locals()

    def the_snapshot(self: Any, key: Any) -> Any:
        return self.snapshot()

    def private(self: Any, key: Any) -> Any:
        return kept(self.__z)

    def any_arguments(*arguments: Any) -> Any:
        return arguments[0].x


WHOLE: dict[str, set[str] | None] = {
    "by_key": {"x"},
    "by_methods": set(),
    "by_walking": set(),
    "by_truth": set(),
    "by_assigning": set(),
    "by_variable": {"y"},
    "by_rebound_variable": {"x"},
    "by_captured_variable": {"x"},
    "as_argument": {"x"},
    "as_key_word": {"y"},
    "as_result": {"x"},
    "as_text": {"x"},
    "as_part": {"x", "y"},
    "as_operand": {"x", "y"},
    "as_other_truth": {"x", "y"},
    "as_left_of_in": {"x", "y"},
    "as_type": {"x", "y"},
    "in_place": {"x"},
    "by_other_method": {"x", "y"},
    "by_own_function": {"x"},
    "by_matching": {"x"},
    "of_the_class": set(),
    "itself": None,
    "by_name": None,
    "all_attributes": None,
    "all_variables": None,
    "the_snapshot": None,
    "private": None,
    "any_arguments": None,
}
"""Which attributes each method lets others get hold of; None where it may be any."""


def with_members(*bases: type, **members: Any) -> frozenset[str] | None:
    return read_whole(types.new_class("Kind", (*bases, Process), {}, lambda ns: ns.update(members)))


@pytest.mark.parametrize("method", WHOLE)
def test_what_a_method_does_decides(method: str) -> None:
    whole = WHOLE[method]
    expected = None if whole is None else frozenset(whole)
    assert with_members(on_tuple=vars(Method)[method]) == expected


def test_every_method_above_is_tried() -> None:
    written = {n for n, m in vars(Method).items() if isinstance(m, types.FunctionType)}
    assert written == set(WHOLE)


def test_all_code_that_gets_the_object_counts() -> None:
    hands_on = vars(Method)["as_result"]
    assert with_members(shown=property(hands_on)) == {"x"}
    assert with_members(shown=property(None, hands_on)) == {"x"}
    assert with_members(shown=cached_property(hands_on)) == {"x"}
    assert with_members(type("Base", (), {"shown": hands_on})) == {"x"}
    assert with_members(shown=staticmethod(kept), other=classmethod(kept), limit=3) == set()


def test_what_classes_are_often_derived_from_changes_nothing() -> None:
    T = TypeVar("T")

    class Both(Process, ABC, Generic[T]):
        """On two bases of the standard library."""

        @abstractmethod
        def key(self, tuple: Any) -> T: ...

        def on_tuple(self, tuple: Any, keys: list[Any]) -> None:
            self.x: dict[T, int] = {}
            self.x[self.key(tuple)] = 1

    assert read_whole(Both) == {"key"}


def logged(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        kept(self)
        return method(self, *arguments)

    return call


def test_code_that_cannot_be_read_may_do_anything() -> None:
    by_key = vars(Method)["by_truth"]
    made: dict[str, Any] = {}
    exec("def written(self, key):\n    return self.x[key]", made)
    assert with_members(on_tuple=by_key) == set()
    assert with_members(on_tuple=logged(by_key)) is None
    assert with_members(on_tuple=made["written"]) is None
    assert with_members(on_tuple=lambda self, key: self.x[key]) is None
    assert with_members(on_tuple=functools.partialmethod(by_key, 1)) is None
    assert with_members(on_tuple=by_key, __getattr__=by_key) is None
    assert with_members(Counter, on_tuple=by_key) is None


class Shown(Process):
    """Tells all that code which gets hold of a mapping can find out about it."""

    output = {"told": "string"}  # noqa: RUF012

    def __init__(self) -> None:
        self.plain: dict[str, list[int]] = {}
        self.counts: Counter[str] = Counter()
        self.ordered: OrderedDict[str, int] = OrderedDict()
        self.lists: defaultdict[str, list[int]] = defaultdict(list)

    def on_tuple(self, tuple: Any, keys: list[str]) -> Any:
        for key in keys:
            self.plain.setdefault(key, []).append(tuple.v)
            self.counts[key] += 1
            self.ordered[key] = tuple.v
            self.ordered.move_to_end(key, last=bool(tuple.v))
            self.lists[key].append(tuple.v)
        return [(told(m),) for m in (self.plain, self.counts, self.ordered, self.lists)]


def told(mapping: Any) -> str:
    """What serialisers, copies and comparisons written in C make of a mapping."""
    facts = [type(mapping).__name__, isinstance(mapping, dict), repr(mapping)]
    facts += [json.dumps(mapping), repr(dict(mapping)), repr({**mapping}), repr({} | mapping)]
    facts += [repr(copy.deepcopy(mapping)), repr(copy.copy(mapping)), repr(mapping.copy())]
    facts += [pickle.dumps(list(pickle.loads(pickle.dumps(mapping)).items()), 0).decode()]
    facts += [
        mapping == dict(mapping),
        "{a}".format_map(defaultdict(str, mapping)),
        repr(reversed(mapping)),
    ]
    facts += [pa.array([list(mapping)]).to_pylist(), str(dict.fromkeys(mapping)), set(mapping) == 1]
    facts += [repr(list(dict.items(mapping))), repr(dict.get(mapping, "a")), dict.__len__(mapping)]
    return re.sub("0x[0-9a-f]+", "", str(facts))


def test_whoever_gets_hold_of_a_mapping_gets_a_real_one() -> None:
    assert read_whole(Shown) == {"counts", "lists", "ordered", "plain"}
    rows = [
        {"ts": i, "src": 0, "seq": i, "k": ["abc"[i % 3], "ca"[i % 2]], "v": i % 4}
        for i in range(12)
    ]
    found = run(spec_of(Shown), rows, range(1, 12))
    assert found == run(spec_of(Shown), rows)
    assert len(found) >= 4 * len(rows)
