"""Writes metrics as text: Prometheus' own format, and OpenMetrics.

https://prometheus.io/docs/instrumenting/exposition_formats/ and
https://prometheus.io/docs/specs/om/open_metrics_spec/ define them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.driver.metric.family import Labels, MetricFamily
from tidegate.driver.metric.registry import FAMILIES

if TYPE_CHECKING:
    from tidegate.driver.exposition.observer import MetricsObserver


@dataclass(frozen=True)
class ExpositionFormat:
    """One of the formats: how a family begins, and how the text ends."""

    media: str
    content_type: str
    head: Callable[[MetricFamily], Iterable[str]]
    end: str = ""


def _plain_head(family: MetricFamily) -> Iterator[str]:
    yield f"# HELP {family.series_name} {_help(family)}"
    yield f"# TYPE {family.series_name} {family.kind}"


def _open_head(family: MetricFamily) -> Iterator[str]:
    yield f"# TYPE {family.full_name} {family.kind}"
    if family.unit is not None:
        yield f"# UNIT {family.full_name} {family.unit}"
    yield f"# HELP {family.full_name} {_help(family)}"


def _help(family: MetricFamily) -> str:
    return family.help.replace("\\", "\\\\").replace("\n", "\\n").replace('"', "'")


PLAIN = ExpositionFormat("text/plain", "text/plain; version=0.0.4; charset=utf-8", _plain_head)
OPEN = ExpositionFormat(
    "application/openmetrics-text",
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    _open_head,
    "# EOF\n",
)


def wanted(accept: str) -> ExpositionFormat:
    """The format that a header `Accept` likes best; Prometheus' own where it says nothing."""
    liked: dict[str, float] = {}
    for part in accept.split(","):
        media, *parameters = (word.strip().lower() for word in part.split(";"))
        weights = [p.removeprefix("q=") for p in parameters if p.startswith("q=")]
        liked[media] = max(_number(weights[0]) if weights else 1.0, liked.get(media, 0.0))
    plain = max(liked.get(media, 0.0) for media in (PLAIN.media, "text/*", "*/*"))
    return OPEN if liked.get(OPEN.media, 0.0) >= max(plain, 1e-3) else PLAIN


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def written(runs: Mapping[str, MetricsObserver], form: ExpositionFormat) -> str:
    """The metrics of runs by the name of the query; a family without a sample is left out."""
    views = [(query, run, run.view()) for query, run in runs.items()]
    lines: list[str] = []
    for family in FAMILIES:
        found = [
            f"{family.series_name}{s.suffix}{_labels(query, s.labels)} {_value(s.value)}"
            for query, run, view in views
            for s in run.samples(family, view)
        ]
        if found:
            lines += [*form.head(family), *found]
    return "".join(f"{line}\n" for line in lines) + form.end


def _labels(query: str, labels: Labels) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in (("query", query), *labels))
    return f"{{{','.join(pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _value(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
