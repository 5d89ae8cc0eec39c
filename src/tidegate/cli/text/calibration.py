"""The text of `tidegate calibrate`: a query's cost constants."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.cli.text.quantity import number_text, numbers_between, seconds_between, seconds_text
from tidegate.model.cost.calibration import Calibration, Estimate
from tidegate.model.sizing.calibration_file import MeasuredSubquery, QueryCalibration
from tidegate.plan.explain import many

_OUTPUT = {
    "aggregate": "to close a group of a window",
    "join": "to output a matching pair",
}


_SCATTER = "how much batches vary, as a share of what they take"

Row = tuple[str, Estimate | float, str]
"""A constant, its value, and its meaning."""


def calibration_lines(found: QueryCalibration) -> list[str]:
    """What was measured, and one table per subquery."""
    place = found.facts["master"]
    where = "in this process" if place == "none" else f"on {place}"
    lines = [
        f"{found.rows:,} rows in {found.batches} batches, "
        f"{many(found.instances, 'instance')} {where}, {many(found.facts['cores'], 'core')}"
    ]
    several = len(found.subqueries) > 1
    for known in found.subqueries:
        calibration = known.calibration()
        if calibration is None:
            lines.append(f"{known.name}: {unseen(known) or 'too few batches had tuples of it'}")
            continue
        method = f", {known.method}" if known.method else ""
        lines.append(f"{known.name}: {found.facts['windows'][known.name]}{method}")
        rows = (_instance_rows if several else _rows)(known, calibration)
        lines += [f"  {line}" for line in [*_table(rows), *_doubts(known, calibration)]]
    if several:
        batch, each, output = found.beside.rest_costs()
        beside: list[Row] = [
            ("output", output, "to output a row of the query"),
            ("tuple", each, "to read a tuple, or to hand it on"),
            ("batch", batch, "for a batch, however small"),
            ("scatter", found.beside.rest_fit.scatter, _SCATTER),
        ]
        lines += ["beside the instances:", *(f"  {line}" for line in _table(beside))]
    return lines


def _rows(known: MeasuredSubquery, found: Calibration) -> list[Row]:
    """The constants of a query with one subquery."""
    rows: list[Row] = [
        ("beta", found.beta, _OUTPUT.get(known.kind, "to output a row")),
        ("tuple", found.tuple_s, "to take a tuple in"),
        ("batch", found.batch_s, "for a batch, however small"),
        ("scatter", found.scatter, _SCATTER),
    ]
    if known.kind != "join":
        return rows
    together = "to compare a pair, with its share of output"
    return [
        ("alpha", found.alpha, "to compare a pair"),
        rows[0],
        ("sigma", found.sigma, "share of pairs that match"),
        ("alpha + sigma beta", found.comparison, together),
        *rows[1:],
    ]


def _instance_rows(known: MeasuredSubquery, found: Calibration) -> list[Row]:
    """The constants of one subquery's instances, if there are several subqueries."""
    batch, each, _, output = known.estimator.work_costs()
    rows: list[Row] = [
        ("beta", output, _OUTPUT.get(known.kind, "to output a row")),
        ("tuple", each, "for an instance to take a tuple in"),
        ("batch", batch, "for each instance of a batch"),
    ]
    if known.kind != "join":
        return rows
    alpha: Row = ("alpha", found.alpha, "to compare a pair")
    return [alpha, rows[0], ("sigma", found.sigma, "share of pairs that match"), *rows[1:]]


def _table(constants: Sequence[Row]) -> list[str]:
    """The columns constant, value, interval and meaning."""
    rows = [("constant", "value", "95 percent interval", "what it is")]
    for name, of, meaning in constants:
        if isinstance(of, float):
            value, interval = f"{of:.0%}", "-"
        elif name == "sigma":
            value, interval = number_text(of.value), numbers_between(of)
        elif of.high == 0:  # what was never due has no cost that could be seen
            value, interval = "-", "not known"
        else:
            value, interval = seconds_text(of.value), seconds_between(of)
        rows.append((name, value, interval, meaning))
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}"
        for row in rows
    ]


def unseen(known: MeasuredSubquery) -> str | None:
    """What the measured rows do not show about a subquery; None if nothing is missing."""
    samples = known.estimator.samples
    if not samples:
        return "no tuple came to it, so what it costs is not known: more rows say more"
    if known.kind == "join" and not any(s.comparisons for s in samples):
        return "nothing was compared, so what that costs is not known: more rows say more"
    if not any(s.outputs for s in samples):
        return "nothing was put out, so what that costs is not known: more rows say more"
    return None


def _doubts(known: MeasuredSubquery, found: Calibration) -> list[str]:
    """What the measured batches could not determine."""
    doubt = unseen(known)
    if doubt is None and known.kind == "join" and not found.told_apart:
        doubt = (
            "alpha and beta cannot be told apart: the same share of pairs matched in all batches, "
            "so only their sum is known"
        )
    return [] if doubt is None else [doubt]
