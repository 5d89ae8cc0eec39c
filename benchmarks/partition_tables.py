"""The tables of docs/measured/partitioning.md, from the reports of `partitioners.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

SHOWN = ("hash", "shuffle", "pk", "cm", "am", "cam", "cam?keys=hll", "lm", "auto")
PATHS = ("hash", "shuffle", "pk", "am", "cam", "cam?d=5", "auto")
LEAST_MANY, MOST_FEW = 5_000, 10
"""Groups in a window of streams that are said to have many, and few."""
TABLE_4 = {"cm": "243", "am": "122", "lm": "243"}
"""Megabytes of the dissertation's sets, for 8 to 32 workers."""
Report = Mapping[str, Any]


def sizes(report: Report) -> Iterator[str]:
    """How much was measured, in a sentence."""
    yield (
        f"A window has {report['window_rows']:,} tuples, or as many as a real stream has for "
        f"{report['windows']} windows."
    )


def balance(report: Report) -> Iterator[str]:
    """How many more tuples than the mean the fullest instance has, and the aggregation cost."""
    yield from _head("stream, groups in a window", SHOWN)
    for case, by_count in report["balance"].items():
        of = by_count[min(by_count, key=int)]
        cells = [f"{f['tuple_imbalance']:.0%}, {f['aggregation_cost']:.2f}" for f in _of(of, SHOWN)]
        yield _row(f"{case}: {of['hash']['keys']:,.0f}", cells)


def sources(report: Report) -> Iterator[str]:
    """The same where several sources decide."""
    names = list(next(iter(report["sources"].values())))
    yield from _head("stream", names)
    for case, of in report["sources"].items():
        cells = [f"{f['tuple_imbalance']:.0%}, {f['aggregation_cost']:.2f}" for f in _of(of, names)]
        yield _row(case, cells)


def memory(report: Report) -> Iterator[str]:
    """Table 4."""
    by_count = report["memory_mb"]
    yield f"With {report['fine_keys']:,} keys:"
    yield ""
    yield from _head(
        "", [f"{count} instances" for count in by_count] + ["dissertation"], code=False
    )
    for name in next(iter(by_count.values())):
        cells = [_megabytes(of[name]) for of in by_count.values()]
        told = TABLE_4.get(name, "0.02 to 0.08")
        yield _row(f"`{name}`", [*cells, f"{told} MB"])


def sketch(report: Report) -> Iterator[str]:
    """AM with sets and with HyperLogLog in a window of as many keys."""
    by_count = report["sketch"]
    yield from _head("", [f"{count} instances" for count in by_count], code=False)
    for name in next(iter(by_count.values())):
        found = [of[name] for of in by_count.values()]
        cells = [
            f"tuples {f['tuple_imbalance']:.1%}, keys {f['key_imbalance']:.1%}, "
            f"cost {f['aggregation_cost']:.3f}"
            for f in found
        ]
        yield _row(f"`{name}`", cells)


def speed(report: Report) -> Iterator[str]:
    """Million decisions a second."""
    rates = report["million_decisions_per_s"]
    laws = list(next(iter(rates.values())))
    yield from _head("", [f"keys {law}" for law in laws], code=False)
    for name, rate in rates.items():
        yield _row(f"`{name}`", [f"{rate[law]:.0f} million/s" for law in laws])


def costs(report: Report) -> Iterator[str]:
    """What was measured for the paths."""
    of = {
        "a tuple": ("tuples", "partly", "unit_s"),
        "a partial": ("partials", "partly", "unit_s"),
        "a group": ("tuples", "partly", "group_s"),
        "a merged part": ("tuples", "merge", "unit_s"),
        "a tuple, costly": ("costly", "partly", "unit_s"),
        "a group, costly": ("costly", "partly", "group_s"),
        "a merged part, costly": ("costly", "merge", "unit_s"),
    }
    yield from _head("stream", of, code=False)
    for case, by_work in report["costs"].items():
        cells = [_time(by_work[work][step][what]) for work, step, what in of.values()]
        yield _row(case, cells)


def paths(report: Report, work: str) -> Iterator[str]:
    """Milliseconds of a window, the shortest of each stream in bold."""
    found = {
        case: by_count[middle_of(by_count)][work] for case, by_count in report["paths"].items()
    }
    names = [name for name in PATHS if name in next(iter(found.values()))]
    yield from _head("stream", names)
    for case, of in found.items():
        least = min(of[name]["path_s"] for name in names)
        cells = []
        for name in names:
            seconds = of[name]["path_s"]
            text = f"{seconds * 1e3:,.2f} ms"
            cells.append(f"**{text}**" if seconds == least else text)
        yield _row(case, cells)


def claims(report: Report) -> Iterator[str]:
    """Section 3.7, beside what the costs of this engine make of it."""
    views = {
        "tuples, merged at one": ("tuples", "at_one_s"),
        "tuples": ("tuples", "path_s"),
        "costly tuples": ("costly", "path_s"),
        "partials": ("partials", "path_s"),
    }
    yield from _head("how many times as long", ["dissertation", *views], code=False)
    many = [case for case in report["paths"] if groups_of(report, case) >= LEAST_MANY]
    few = [case for case in report["paths"] if groups_of(report, case) <= MOST_FEW]
    for title, told, cases, slower, faster in (
        ("many groups: `pk`, of the better of `am` and `cam`", "4.5 to 11.6", many, "pk", _AFFINE),
        ("many groups: `hash`, of the same", "1.2 to 1.9", many, "hash", _AFFINE),
        ("many groups: `shuffle`, of the same", "more than 1", many, "shuffle", _AFFINE),
        (
            "few groups: the better of `am` and `cam`, of `shuffle`",
            "more than 1",
            few,
            _AFFINE,
            "shuffle",
        ),
        ("few groups: `pk`, of `shuffle`", "more than 1", few, "pk", "shuffle"),
        ("all: `auto`, of the best fixed choice", "", list(report["paths"]), "auto", FIXED),
    ):
        cells = [_range(ratios(report, cases, *view, slower, faster)) for view in views.values()]
        if slower == "auto":
            cells[0] = ""  # it knows who merges here
        yield _row(title, [told, *cells])


_AFFINE = ("am", "cam")
FIXED = ("hash", "shuffle", "pk", "cm", "am", "cam", "cam?d=5", "cam?keys=hll", "lm")


def middle_of(by_count: Mapping[str, Any]) -> str:
    """The number of instances that tables and bars of paths are for."""
    counts = list(by_count)
    return counts[len(counts) // 2]


def groups_of(report: Report, case: str) -> float:
    """How many groups a window of a stream has."""
    by_count = report["balance"][case]
    found: float = by_count[min(by_count, key=int)]["hash"]["keys"]
    return found


def ratios(
    report: Report,
    cases: Iterable[str],
    work: str,
    what: str,
    slower: str | Sequence[str],
    faster: str | Sequence[str],
) -> list[float]:
    """How many times as long as another a partitioner takes, on all streams and numbers.

    Of several it is the best of them each time.
    """
    found = []
    for case in cases:
        for by_work in report["paths"][case].values():
            of = by_work[work]
            found.append(_best(of, what, slower) / _best(of, what, faster))
    return found


def _best(of: Mapping[str, Any], what: str, names: str | Sequence[str]) -> float:
    named = [names] if isinstance(names, str) else names
    return min(float(of[name][what]) for name in named if name in of)


def _range(found: Sequence[float]) -> str:
    if not found:
        return ""
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low} to {high}"


def _of(found: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [found[name] for name in names if name in found]


def _head(first: str, names: Iterable[str], code: bool = True) -> Iterator[str]:
    shown = [f"`{name}`" if code else name for name in names]
    yield f"| {first} | {' | '.join(shown)} |"
    yield "|---|" + "---|" * len(shown)


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def _megabytes(value: float) -> str:
    return f"{value:,.0f} MB" if value >= 1 else f"{value:.3f} MB"


def _time(seconds: float) -> str:
    if not seconds:
        return "-"
    return f"{seconds * 1e9:,.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.1f} us"
