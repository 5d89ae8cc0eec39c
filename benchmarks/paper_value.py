"""Reads figures of result files by path, and puts them into sentences.

A path is the keys from the top of a file to a number: `runs/shared/16/0.5/best/rate`. In it

- `*` stands for every key or item there, and `#` for the keys themselves, as numbers;
- `least` and `most` for what has the smallest and the largest number as its key;
- `case=sparse` for the items of a list of which `case` is "sparse", `a=1&b=2` for those of both;
- `@sustained-5-minutes/` at its beginning says which file, where it is not that of the figure.

A word before a path makes one number of many (`FOLDS`), and `A over B` divides. In a sentence a
path stands in braces, after a colon with how it is printed: `{max cases/*/ratio:.1f}`. That may be
`billion`, `million` or `thousand` too, or end with a unit, as `.1f s`; `word` is a number in words,
and `some instance` that with as many instances. A sentence has no digits of its own but those that
are published, in double brackets, and those of figures that it names. Where a run had no occasion
to see something, its result has null or infinity: a sentence says "not seen" for it, and for a
maximum, a mean or a quotient of which it is a part.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from measure import RESULTS

FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "max": max,
    "min": min,
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": sum,
    "count": len,
}
_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
)
_UNITS = {"billion": 1e9, "million": 1e6, "thousand": 1e3}
_PUBLISHED = re.compile(r"\[\[(.*?)\]\]")
_HOLE = re.compile(r"\{((?:[^{}:]|: )+)(?::([^{} ]+(?: [^{} ]+)?))?\}")


Reports = Mapping[str, Any]
_NONE: Reports = {}


@cache
def report(name: str, folder: Path = RESULTS) -> Any:
    """A result file, read once."""
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def is_there(name: str) -> bool:
    """Whether a program has written this result."""
    return (RESULTS / f"{name}.json").exists()


def value(expression: str, result: str, given: Reports = _NONE) -> Any:
    """The one number that an expression stands for; `given` are reports that are not kept."""
    above, over, below = expression.partition(" over ")
    if over:
        both = [value(part, result, given) for part in (above, below)]
        return None if None in both else both[0] / both[1]
    word, _, rest = expression.partition(" ")
    if word in FOLDS:
        many = values(rest, result, given)
        return None if None in many else FOLDS[word](many)
    (found,) = values(expression, result, given)
    return found


def read(expression: str, result: str, given: Reports = _NONE) -> None:
    """Find all numbers that an expression needs; a KeyError where one is missing."""
    for part in expression.split(" over "):
        word, _, rest = part.partition(" ")
        values(rest if word in FOLDS else part, result, given)


def values(path: str, result: str, given: Reports = _NONE) -> list[Any]:
    """All numbers that a path leads to, in the order of the file; at least one."""
    if path.startswith("@"):
        result, _, path = path[1:].partition("/")
    found = [given[result] if result in given else report(result)]
    for step in path.split("/"):
        found = [inner for of in found for inner in _inside(of, step)]
    if not found:
        raise KeyError(f"{result}.json: must have {path}; got nothing there")
    return found


def _inside(of: Any, step: str) -> Iterator[Any]:
    if of is None:  # nor was what would be in it
        yield None
    elif step == "*":
        yield from of.values() if isinstance(of, dict) else of
    elif step == "#":
        yield from (float(key) for key in of)
    elif isinstance(of, dict):
        if step in of:
            yield of[step]
        elif step in ("least", "most"):
            yield of[(min if step == "least" else max)(of, key=float)]
    elif step.lstrip("-").isdigit():
        yield of[int(step)]
    else:
        wanted = [part.split("=") for part in step.split("&")]
        yield from (one for one in of if all(str(one[name]) == text for name, text in wanted))


def told(sentence: str, result: str, given: Reports = _NONE) -> str:
    """A sentence with its numbers in place."""
    found = _HOLE.sub(lambda hole: _printed(value(hole[1], result, given), hole[2]), sentence)
    return _PUBLISHED.sub(r"\1", found)


def results_of(sentence: str, result: str) -> set[str]:
    """The results that a sentence reads."""
    paths = [word for hole in _HOLE.finditer(sentence) for word in hole[1].split()]
    named = {path[1:].partition("/")[0] for path in paths if path.startswith("@")}
    return named | {result} - {""}


def words_of(sentence: str) -> str:
    """What is left of a sentence without what comes from results, and what is published."""
    return _PUBLISHED.sub("", _HOLE.sub("", sentence))


def _printed(found: Any, how: str | None) -> str:
    if found in (None, math.inf):
        return "not seen"
    if how is None:
        return str(found)
    if how in _UNITS:
        return f"{found / _UNITS[how]:,.3g} {how}"
    digits, space, unit = how.partition(" ")
    if digits in ("word", "some"):
        word = _WORDS[int(found)] if found < len(_WORDS) else f"{found:,.0f}"
        return word + space + unit + ("s" if unit and found != 1 else "")
    return f"{found:{digits}}{space}{unit}"
