"""The constants of a query in words, for `tidegate calibrate`."""

from __future__ import annotations

from tidegate.cli.quantity import number_text, numbers_between, seconds_between, seconds_text
from tidegate.model.calibration import Calibration, Estimate
from tidegate.model.calibration_file import QueryCalibration
from tidegate.model.known import Known
from tidegate.plan.explain import many

_OUTPUT = {
    "aggregate": "to close a group of a window",
    "join": "to put a matching pair out",
}


def calibration_lines(found: QueryCalibration) -> list[str]:
    """What was measured, and a table for each subquery."""
    place = found.facts["master"]
    where = "in this process" if place == "none" else f"on {place}"
    lines = [
        f"{found.rows:,} rows in {found.batches} batches, "
        f"{many(found.instances, 'instance')} {where}, {many(found.facts['cores'], 'core')}"
    ]
    for known in found.subqueries:
        calibration = known.calibration()
        if calibration is None:
            lines.append(f"{known.name}: no tuple came to it; more --rows say more")
            continue
        lines += [
            f"{known.name}: {found.facts['windows'][known.name]}"
            + (f", {known.method}" if known.method else ""),
            *(f"  {line}" for line in _table(known, calibration)),
            *(f"  {line}" for line in _doubts(known, calibration)),
        ]
    return lines


def _table(known: Known, found: Calibration) -> list[str]:
    """Constant, value, interval, meaning."""
    rows = [("constant", "value", "95 percent interval", "what it is")]

    def time(name: str, of: Estimate, meaning: str) -> None:
        rows.append((name, seconds_text(of.value), seconds_between(of), meaning))

    joins = known.kind == "join"
    if joins:
        time("alpha", found.alpha, "to compare a pair")
    if joins or found.beta.high > 0:
        time("beta", found.beta, _OUTPUT.get(known.kind, "to put a row out"))
    if joins:
        rate = numbers_between(found.sigma)
        rows.append(("sigma", number_text(found.sigma.value), rate, "pairs that match, of each"))
        time("alpha + sigma beta", found.comparison, "to compare a pair, with its share of output")
    time("tuple", found.tuple_s, "to take a tuple in")
    time("batch", found.batch_s, "for a batch, however small")
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}"
        for row in rows
    ]


def _doubts(known: Known, found: Calibration) -> list[str]:
    """What the batches could not tell."""
    lines = []
    samples = known.estimator.samples
    if known.kind == "join" and not any(s.comparisons for s in samples):
        lines.append("nothing was compared: more --rows say more")
    elif not any(s.outputs for s in samples):
        lines.append("nothing was put out, so what that takes is not known: more --rows say more")
    elif known.kind == "join" and not found.told_apart:
        lines.append(
            "alpha and beta cannot be told apart: the same share of pairs matched in all batches, "
            "so only their sum is known"
        )
    return lines
