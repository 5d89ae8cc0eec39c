"""The tables of docs/determinism.md, from the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from determinism.guarantee import GUARANTEES
from determinism.judge import said
from determinism.variation import ENGINES, QUERIES, RUNS

Report = dict[str, Any]
_NOT_RUN = "–"


def answers(report: Report) -> Iterator[str]:
    """Each engine and query, and what became of the answer in each run."""
    yield f"| engine | query | rows | {' | '.join(RUNS)} |"
    yield f"|---|---|---|{'---|' * len(RUNS)}"
    for name, engine in report["engines"].items():
        for query in (q for q in QUERIES if q in engine["queries"]):
            of = engine["queries"][query]
            cells = [
                said(of["variations"][run]) if run in of["variations"] else _NOT_RUN for run in RUNS
            ]
            title = f"{ENGINES[name].title} {engine['version']}"
            yield f"| {title} | `{query}` | {of['rows']:,} | {' | '.join(cells)} |"


def rows(report: Report) -> Iterator[str]:
    """The first row that differs of each run that changed the answer."""
    yield "| engine | query | run | in the run it is compared with | in this run |"
    yield "|---|---|---|---|---|"
    for name, engine in report["engines"].items():
        for query, of in engine["queries"].items():
            for run, outcome in of["variations"].items():
                if outcome["lost"] or outcome["gained"]:
                    pair = (_row(outcome[key]) for key in ("first_lost", "first_gained"))
                    title = ENGINES[name].title
                    yield f"| {title} | `{query}` | {run} | {' | '.join(pair)} |"


def guarantees(report: Report) -> Iterator[str]:
    """What each engine's documentation says."""
    yield "| engine | its documentation |"
    yield "|---|---|"
    for name in report["engines"]:
        found = GUARANTEES[name]
        yield f"| {ENGINES[name].title} | “{found.quote}” ([page]({found.page})) |"


def _row(found: list[str]) -> str:
    """Floats, which the report has by their bits, as the shortest text that has the same bits."""
    if not found:
        return "none"
    cells = (
        repr(float.fromhex(v)) if isinstance(v, str) and v.startswith(("0x", "-0x")) else str(v)
        for v in json.loads(found[0])
    )
    return f"`{', '.join(cells)}`"
