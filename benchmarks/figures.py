"""Figures in the sentences and hand-made tables of docs/, made from results; a test compares.

`tables.py` writes whole tables. Here are single figures: a text with the figures of a report, which
its page must contain word for word. A figure that no report has does not belong on a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from measure import HERE, RESULTS

Report = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """A page, the report that it quotes, and the text that it must contain."""

    page: str
    report: str
    text: Callable[[Report], str]

    def expected(self) -> str:
        file = RESULTS / f"{self.report}.json"
        return self.text(json.loads(file.read_text(encoding="utf-8")))

    def is_there(self) -> bool:
        """Whether the page says so; lines may be broken anywhere."""
        text = (HERE.parent / "docs" / self.page).read_text(encoding="utf-8")
        return " ".join(self.expected().split()) in " ".join(text.split())


def significant(number: float, digits: int = 3) -> str:
    """A number with so many digits that count, and commas: 38,300."""
    return f"{float(f'{number:.{digits}g}'):,.0f}"


def spread(found: Report, digits: int = 3) -> str:
    """A median with the least and the most."""
    middle, low, high = (significant(found[k], digits) for k in ("median", "low", "high"))
    return f"{middle} ({low} to {high})"


def _windows(report: Report) -> str:
    """Million rows a second of Tidegate and both stores of Spark, and how often the first."""
    (case,) = report["cases"]
    median, ratio = case["median"], case["ratio"]
    names = ("tidegate", "spark", "spark-rocksdb")
    speeds = [median[name]["rows_per_second"] / 1e6 for name in names]
    texts = [f"{s:.2f}" if s >= 0.1 else f"{s:.3f}" for s in speeds]
    if case["case"] == "sliding":
        own = median["tidegate"]
        texts[0] += f" ({own['low'] / 1e6:.2f} to {own['high'] / 1e6:.2f})"
    return f"| {' | '.join(texts)} | {ratio['spark']:.1f}, {ratio['spark-rocksdb']:.1f} |"


def _tiny_windows(report: Report) -> str:
    (case,) = report["cases"]
    runs = [[f"{run['batch_ms_median']:.0f}" for run in of] for of in case["runs"].values()]
    ratio = case["ratio"]
    times = " | ".join(f"{', '.join(of)} ms" for of in runs)
    return f"| {times} | {ratio['spark']:.1f}, {ratio['spark-rocksdb']:.1f} |"


def _distinct(report: Report) -> Iterator[str]:
    for case in report["cases"]:
        cells = []
        for of in ("distinct", "approx_count_distinct"):
            least = case["least"][of]
            seconds = least["fold"] + least["merge"] + least["close"]
            size = least["bytes"]
            held = f"{size / 1e6:.1f} MB" if size > 1e5 else f"{size / 1e3:.0f} kB"
            cells.append(f"{significant(case['rows'] / seconds / 1e3)}, {held}")
        yield f"| {case['case']} | {' | '.join(cells)} |"


def _shrinking(report: Report) -> str:
    one, ten = (case["us_per_row"]["median"] for case in report["cases"])
    return f"| {ten / one:.2f} times the cost per tuple"


def _engines(report: Report) -> str:
    own, spark = (report["rows_per_second"][n]["median"] for n in ("tidegate", "spark"))
    return f"| {significant(own)} against {significant(spark, 2)} rows/s: {own / spark:.1f} times |"


def _driver_state(report: Report) -> str:
    shared, apart = report["shared"], report["apart"]
    return (
        f"The manifest is {shared['manifest_bytes'] / 1e3:.0f} kB; writing it takes "
        f"{shared['write_ms']:.1f} ms, reading it {shared['read_ms']:.1f} ms. Finding the segments "
        f"that a batch needs takes {shared['horizon_ms']:.1f} ms, finding what is worth compacting "
        f"{shared['choose_ms']:.1f} ms, a switch {shared['switch_ms']:.1f} ms. If every segment "
        f"has different buckets, the manifest is {apart['manifest_bytes'] / 1e6:.1f} MB, written "
        f"in {apart['write_ms']:.0f} ms and read in {apart['read_ms']:.0f} ms."
    )


def _durability(report: Report) -> str:
    large, small = (report["cases"][f"{size} batches"]["medians"] for size in ("large", "small"))
    speed, time = large["rows_per_second"], small["batch_ms"]
    return (
        f"{speed['now'] / speed['before']:.2f} times as fast in batches of 500,000 rows, and "
        f"{time['now'] - time['before']:.2f} ms more for a batch of 1,000 ({time['now']:.0f} ms)"
    )


def _proof(report: Report) -> str:
    return "\n".join(
        f"| {case} | {of['cpu_ms']:.0f} ms | {of['digest_ms']:.1f} ms, {of['digest_percent']:.1f}% "
        f"| {of['signature_ms']:.1f} ms, {of['signature_percent']:.1f}% |"
        for case, of in report["medians"].items()
    )


def _readme_windows(report: Report) -> str:
    median = report["cases"][0]["median"]
    speeds = [f"{median[name]['rows_per_second'] / 1e6:.2f}" for name in ("tidegate", "spark")]
    return f"| sliding windows, million rows/s | {' | '.join(speeds)} |"


def _readme_latency(report: Report) -> str:
    names = ("tidegate-window, 5,000/s", "spark-micro-batches, 5,000/s")
    times = [f"{report['latency'][n]['latency_ms']['p50']['median']:,.0f} ms" for n in names]
    return f"| sliding window, median latency | {' | '.join(times)} |"


def _readme_kafka(report: Report) -> str:
    speed = report["cases"][0]["rows_per_second"]
    speeds = [f"{speed[name]['median']:,.0f}" for name in ("tidegate", "spark")]
    return f"| Kafka to Kafka, rows/s | {' | '.join(speeds)} |"


_IN_README = ("tidegate", "spark", "flink", "pathway")


def _of_each(report: Report, case: str, text: Callable[[Report], str]) -> Iterator[str]:
    """Of the engines in the README; one that failed, or is not in the report, was not measured."""
    for name in _IN_README:
        of = report["cases"].get(case, {}).get(name, {})
        yield text(of) if "version" in of else "not measured"


def _readme_peers(report: Report) -> str:
    speeds = _of_each(report, "sliding", lambda of: f"{of[_SPEED]['median'] / 1e6:.2f}")
    return f"| sliding windows, million rows/s | {' | '.join(speeds)} |"


def _readme_peers_latency(report: Report) -> str:
    times = _of_each(report, "latency", lambda of: f"{of['latency_ms']['p50']['median']:,.0f} ms")
    return f"| latency of a window of files, median | {' | '.join(times)} |"


def _by_peers(
    case: str, said: Callable[[Report], str], otherwise: tuple[str, Callable[[Report], str]]
) -> tuple[str, Callable[[Report], str]]:
    """Of all engines in one run, if that has the case; else of two."""
    file = RESULTS / "peers.json"
    cases = json.loads(file.read_text(encoding="utf-8"))["cases"] if file.exists() else {}
    return ("peers", said) if case in cases else otherwise


_PAGE = "measured/engine.md"
_SPEED = "rows_per_second"

FIGURES: tuple[Figure, ...] = (
    *(
        Figure(_PAGE, f"window_aggregate-{case}", _windows)
        for case in ("sliding", "tumbling", "few-keys", "small-batches")
    ),
    Figure(_PAGE, "window_aggregate-tiny-batches", _tiny_windows),
    Figure(_PAGE, "distinct", lambda report: "\n".join(_distinct(report))),
    Figure(_PAGE, "driver_state", _driver_state),
    Figure(_PAGE, "durability_cost", _durability),
    Figure(_PAGE, "proof_cost", _proof),
    Figure(
        _PAGE,
        "join_band-small",
        lambda report: (
            f"{significant(report['cases'][0][_SPEED]['median'])} rows/s with a full window "
            f"({spread(report['cases'][0][_SPEED]).partition('(')[2]}"
        ),
    ),
    Figure(
        _PAGE,
        "join_band-window",
        lambda report: f"| {significant(report['cases'][0][_SPEED]['median'])} rows/s with a full",
    ),
    Figure(_PAGE, "join_band-shrinking", _shrinking),
    Figure(_PAGE, "join_equi-engines", _engines),
    Figure(
        "../README.md",
        *_by_peers("sliding", _readme_peers, ("window_aggregate-sliding", _readme_windows)),
    ),
    Figure(
        "../README.md",
        *_by_peers("latency", _readme_peers_latency, ("latency", _readme_latency)),
    ),
    Figure("../README.md", "kafka", _readme_kafka),
)
