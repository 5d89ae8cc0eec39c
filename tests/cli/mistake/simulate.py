"""Mistakes in `tidegate simulate`, each with the whole line that is said; no trace is read."""

from __future__ import annotations

from tests.cli.mistake.kind import Mistake

SECTION7 = ("simulate", "--experiment", "section7")
WINDOW = "must be a length of time, or a number of rows"
HOW = "Write for example '60 seconds' or '8400 rows'."


def _said(message: str, *options: str) -> Mistake:
    return Mistake(message=message, command=(*SECTION7, *options))


MISTAKES = {
    "no rates": Mistake(
        message=(
            "simulate: needs rates: --trace T.csv or --experiment NAME; got neither. Try "
            "--experiment section7."
        ),
        command=("simulate", "--window", "60 seconds"),
    ),
    "two kinds of rates": _said(
        "simulate: takes --trace or --experiment; got both. Leave one of them out.",
        "--trace",
        "rides.csv",
    ),
    "unknown experiment": Mistake(
        message=(
            "--experiment: must be a known word; got section9. Did you mean section7 or {words}? "
            "There are: section7, {words}."
        ),
        command=("simulate", "--experiment", "section9"),
    ),
    "trace missing": Mistake(
        message=("ride.csv: a trace must be a CSV file; got no such file. Did you mean rides.csv?"),
        command=("simulate", "--trace", "ride.csv"),
    ),
    "trace of something else": Mistake(
        message=(
            "rides.csv: no column of a trace has this name; got ts. Did you mean t or s? There "
            "are: t, r, s, r1, r2, s1, s2."
        ),
        command=("simulate", "--trace", "rides.csv"),
    ),
    "window of nothing": _said("--window: must be longer than zero; got 0 s.", "--window", "0 s"),
    "window of no rows": _said(
        "--window: must be longer than zero; got 0 rows.", "--window", "0 rows"
    ),
    "negative window": _said("--window: must be longer than zero; got -5 s.", "--window", "-5 s"),
    "window without a unit": _said(f"--window: {WINDOW}; got '60'. {HOW}", "--window", "60"),
    "window in an unknown unit": _said(
        f"--window: {WINDOW}; got '60 ticks'. {HOW}", "--window", "60 ticks"
    ),
    "no instances": _said("--instances: must be at least 1; got 0.", "--instances", "0"),
    "half an instance": _said(
        "--instances: must be a whole number; got 1.5.", "--instances", "1.5"
    ),
    "negative alpha": _said("--alpha: must be at least 0; got -1e-8.", "--alpha", "-1e-8"),
    "alpha in words": _said("--alpha: must be a number; got fast.", "--alpha", "fast"),
    "no alpha at all": _said("--alpha: must be a finite number; got nan.", "--alpha", "nan"),
    "infinite beta": _said("--beta: must be a finite number; got inf.", "--beta", "inf"),
    "sigma above one": _said(
        "--sigma: must be at least 0 and at most 1; got 1.5.", "--sigma", "1.5"
    ),
    "zero quota": _said("--quota: must be above 0 and at most 1; got 0.", "--quota", "0"),
    "quota above one": _said("--quota: must be above 0 and at most 1; got 1.1.", "--quota", "1.1"),
    "negative trigger": _said("--batch: must not be negative; got -1 s.", "--batch", "-1 s"),
    "trigger without a unit": _said(
        "--batch: a duration must be a number and a unit; got '500'. Write for example "
        '"15 minutes" or "500 ms".',
        "--batch",
        "500",
    ),
    "cost of batches without batches": _said(
        "--batch-cost: is for micro-batches; got no --batch. Give their trigger, as --batch "
        "'500 ms'.",
        "--batch-cost",
        "15 ms",
    ),
    "unknown policy": _said(
        "--policy: must be a known word; got modell. Did you mean model? There are: fixed, model, "
        "threshold, auto.",
        "--policy",
        "modell",
    ),
    "maximum of nobody": _said(
        "--maximum: is for a policy; got --policy fixed. Give --policy model.",
        "--maximum",
        "8",
    ),
    "ahead by thresholds": _said(
        "--ahead: is for --policy model; got --policy threshold. Leave it out; thresholds "
        "are --policy 'threshold?upper=0.8&lower=0.4'.",
        *("--policy", "threshold", "--ahead", "60 s"),
    ),
    "parameters of the model": _said(
        "--policy: model has no parameters here; got model?upper=0.9. Use --upper-quota, "
        "--lower-quota and --ahead.",
        *("--policy", "model?upper=0.9"),
    ),
    "unknown parameter of thresholds": _said(
        "--policy: threshold has no parameter of this name; got taget. Did you mean target? There "
        "are: upper, target, lower, imbalance, improvement, cooldown, batches, seconds, minimum, "
        "maximum, provisioning.",
        *("--policy", "threshold?taget=0.5"),
    ),
    "maximum of none": _said(
        "--maximum: must be at least 1; got 0.", "--policy", "model", "--maximum", "0"
    ),
    "more instances than the maximum": _said(
        "--instances: must not be more than the maximum of 4; got 5. Give a larger --maximum.",
        *("--policy", "model", "--maximum", "4", "--instances", "5"),
    ),
    "quotas the wrong way round": _said(
        "policy model: lower must not be above upper, both above 0 and at most 1; got lower 0.9 "
        "and upper 0.8.",
        *("--policy", "model", "--lower-quota", "0.9"),
    ),
    "plot in an unknown format": _said(
        "--plot: the extension of the file must be that of an image format; got join.xlsx. There "
        "are: {words}.",
        "--plot",
        "join.xlsx",
    ),
    "plot without an ending": _said(
        "--plot: the extension of the file must be that of an image format; got join. There are: "
        "{words}.",
        "--plot",
        "join",
    ),
    "plot into no folder": _said(
        "--plot: must be a file that can be written; got no/join.png: there is no folder "
        "{folder}/no.",
        "--plot",
        "no/join.png",
    ),
    "records into a folder": _said(
        "--json: must be a file that can be written; got empty, a folder.", "--json", "empty"
    ),
}
