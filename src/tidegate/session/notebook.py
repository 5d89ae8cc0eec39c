"""Shows a query in a notebook: a few figures that a thread writes anew every second.

Plain HTML with a line of SVG, without script or widget: every notebook shows it, and what was shown
last stays in its file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from html import escape
from typing import Any

from tidegate import schedule
from tidegate.driver.loop import Loop
from tidegate.driver.metric.registry import rows_line
from tidegate.driver.metric.text import backlog_text, ms_text
from tidegate.driver.report.status import status_of
from tidegate.state.inspect import frontier_text, size_text

EVERY_S = 1.0
"""How often what is shown is written anew."""

_LINE_BATCHES = 120
_WIDTH, _HEIGHT = 360, 40

Bundle = Mapping[str, str]
"""What a cell shows, by type of content."""


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and "IPKernelApp" in found.config


class LiveCell:
    """Shows something below a cell, and again every second until a future is done.

    A thread of its own does so, until `stop`: where the same is shown in another cell, this one
    stays as it is.
    """

    def __init__(self, content: Callable[[], Bundle], until: Future[Any]) -> None:
        from IPython.display import display

        self._content = content
        self._over = threading.Event()
        first = dict(content())
        self._handle: Any = display(first, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        until.add_done_callback(lambda _: self._over.set())
        self.ended = schedule.current().start("tidegate-notebook", self._refresh, daemon=True)
        """Done when nothing is written any more."""

    def stop(self) -> None:
        self._over.set()

    def _refresh(self) -> None:
        over = False
        while not over:
            over = self._over.wait(EVERY_S)
            self._handle.update(dict(self._content()), raw=True)


def query_html(loop: Loop) -> str:
    """The figures of a query as a table, and the times of its newest batches as a line."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in _figures(status_of(loop))
    )
    records = loop.books.journal.recent.after(loop.manifest.batch - _LINE_BATCHES)
    return f"<table>{rows}</table>{_line([r.report.seconds * 1e3 for r in records])}"


def _figures(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "rows", rows_line(found)
    if found["newest_batch_ms"] is not None:
        median, p95 = (ms_text(found["recent_batches_ms"][name]) for name in ("p50", "p95"))
        yield "speed", f"{found['rows_per_second']:,.0f} rows/s"
        yield "batch", f"{found['batch']:,}: {ms_text(found['newest_batch_ms'])}"
        yield "recent batches", f"p50 {median}, p95 {p95}"
    latency = found["latency_recent_batches_ms"]
    if latency is not None:
        parts = [f"{name} {ms_text(latency[name])}" for name in ("p50", "p95", "p99")]
        yield "latency", ", ".join(parts)
    if found["backlog"] is not None:
        yield "backlog", backlog_text(found["backlog"])
    yield "watermark", frontier_text(found["frontier_us"])
    yield (
        "state",
        f"{found['state_rows']:,} rows, {size_text(found['state_bytes'])}, at most "
        f"{found['state_rows_max']:,} rows, {size_text(found['state_bytes_max'])}",
    )
    instances = (f"{name} {of['instances']:,}" for name, of in found["subqueries"].items())
    yield "instances", ", ".join(instances)


def _line(times_ms: Sequence[float]) -> str:
    """A small picture of times, the newest to the right; nothing for fewer than two."""
    if len(times_ms) < 2:
        return ""
    most, step = max(times_ms) or 1.0, _WIDTH / (len(times_ms) - 1)
    points = " ".join(
        f"{i * step:.1f},{_HEIGHT - 2 - (_HEIGHT - 4) * ms / most:.1f}"
        for i, ms in enumerate(times_ms)
    )
    title = f"{len(times_ms)} batches, the longest {ms_text(most)}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor"/></svg>'
    )
