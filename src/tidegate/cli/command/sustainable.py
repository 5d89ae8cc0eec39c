"""`tidegate plan --sustainable`: measures the highest sustainable rate per number of instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.cli.text.answer import CommandAnswer
from tidegate.model.sizing.rate_search import RateSearch
from tidegate.plan.explain import table
from tidegate.session.calibration.sustain import RateTry, SustainSetup, searches_json, sustainable


def counts_up_to(most: int) -> list[int]:
    """1, 2, 4 and so on, and `most`."""
    doubled = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return [*doubled, most]


def searched(setup: SustainSetup, counts: Sequence[int]) -> CommandAnswer:
    """Searches the highest rate for each number of instances."""
    found = {count: sustainable(setup, count) for count in counts}
    return CommandAnswer(searches_json(found, setup), lambda: "\n".join(lines_of(found, setup)))


def lines_of(found: Mapping[int, RateSearch[RateTry]], setup: SustainSetup) -> list[str]:
    """A table of the rates, and what limits them."""
    rows = [("instances", "tuples/s", "p50", "p99", "batches", "tries")]
    for count, search in found.items():
        best = search.best
        figures = (
            ("none", "-", "-", "-")
            if best is None
            else (
                f"{best.rate:,.0f}",
                f"{best.p50_ms:,.0f} ms",
                f"{best.p99_ms:,.0f} ms",
                f"{best.batches:,}",
            )
        )
        rows.append((str(count), *figures, str(len(search.tries))))
    lines = [
        f"highest rate of all streams together with 99 of 100 answers within {setup.within_s:g} s, "
        f"tried for {setup.seconds:g} s",
        *(f"  {line}" for line in table(rows)),
    ]
    short = [str(count) for count, s in found.items() if s.best is not None and s.best.short]
    if short:
        lines.append(
            f"  with {', '.join(short)}: the input has too few rows to try more; give it more, "
            "or fewer --seconds"
        )
    return lines
