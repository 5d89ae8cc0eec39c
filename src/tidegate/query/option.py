"""What a query may ask beside its answer, between the WITH clauses after it and the plan."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tidegate.approx.error import Metric
from tidegate.duration import duration_text
from tidegate.errors import QueryError
from tidegate.route.registry import partitioner_of

METRICS = tuple(metric.value for metric in Metric)
"""How the errors of the groups of a window become one."""

LEAST_ROWS = 30
"""Of a budget: fewer values say too little of how far they lie apart."""

CONCEPT = "concept"
UNIFORM = "uniform"

KEPT = "kept"
"""The last column of an aggregate that sheds: the share of the group's tuples that were kept."""


@dataclass(frozen=True)
class ErrorBound:
    """Answers differ from the exact ones by at most `error` (relative) in this share of windows.

    `budget_rows` is how many tuples of a window a sample may have; None leaves that to the
    windows. `metric` is how the errors of the groups of a window become one.
    """

    error: float
    confidence: float = 0.95
    budget_rows: int | None = None
    metric: str = Metric.MAX.value

    def __post_init__(self) -> None:
        _share("WITH ERROR", "the error", self.error, "ERROR 10 PERCENT, in Python error=0.1")
        confidence = "CONFIDENCE 95 PERCENT, in Python confidence=0.95"
        _share("WITH ERROR", "the confidence", self.confidence, confidence)
        rows = self.budget_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int)):
            raise QueryError(
                "WITH ERROR",
                "the budget must be a whole number of rows",
                repr(rows),
                "Write for example BUDGET 1000 ROWS, in Python budget=1000.",
            )
        if rows is not None and rows < LEAST_ROWS:
            raise QueryError(
                "WITH ERROR",
                f"the budget must be at least {LEAST_ROWS} rows",
                str(rows),
                "Write a greater one, or leave BUDGET out: windows then take what they need.",
            )
        if self.metric not in METRICS:
            listed = f"{', '.join(METRICS[:-1])} or {METRICS[-1]}"
            raise QueryError(
                "WITH ERROR", f"the metric of groups must be {listed}", repr(self.metric)
            )

    def __str__(self) -> str:
        text = f"ERROR {_percent(self.error)} CONFIDENCE {_percent(self.confidence)}"
        text += "" if self.budget_rows is None else f" BUDGET {self.budget_rows} ROWS"
        return text if self.metric == ErrorBound.metric else f"{text} BY {self.metric.upper()}"


@dataclass(frozen=True)
class Shed:
    """Drop this share of the tuples, chosen uniformly or so that the window's concept stays."""

    share: float
    by: str = CONCEPT

    def __post_init__(self) -> None:
        _share(
            "WITH SHED",
            "the share",
            self.share,
            "WITH SHED 98 PERCENT, in Python .shed(0.98), or leave it out",
        )
        if self.by not in (CONCEPT, UNIFORM):
            raise QueryError("WITH SHED", "BY must be CONCEPT or UNIFORM", str(self.by))

    @property
    def rate(self) -> Fraction:
        """The share that is kept, exactly: one fiftieth of SHED 98 PERCENT."""
        return 1 - Fraction(repr(float(self.share)))

    def __str__(self) -> str:
        return f"SHED {_percent(self.share)} BY {self.by.upper()}"


@dataclass(frozen=True)
class Balance:
    """Trim groups of the fullest buckets, each row within `error` in this share of cases."""

    error: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        example = "BALANCE ERROR 10 PERCENT, in Python .balance(error=0.1)"
        _share("WITH BALANCE", "the error", self.error, example)
        example = "CONFIDENCE 95 PERCENT, in Python confidence=0.95"
        _share("WITH BALANCE", "the confidence", self.confidence, example)

    def __str__(self) -> str:
        return f"BALANCE ERROR {_percent(self.error)} CONFIDENCE {_percent(self.confidence)}"


@dataclass(frozen=True)
class Latency:
    """Results should follow their tuples within this time; remedies are taken to keep it."""

    target_us: int

    def __post_init__(self) -> None:
        if self.target_us <= 0:
            raise QueryError(
                "WITH LATENCY",
                "the target must be longer than zero",
                duration_text(self.target_us),
            )

    def __str__(self) -> str:
        return f"LATENCY {duration_text(self.target_us)}"


@dataclass(frozen=True)
class PartitionedBy:
    """Who chooses where the tuples of the aggregate go, by name and parameters."""

    partitioner: str

    def __post_init__(self) -> None:
        partitioner_of(self.partitioner, "WITH PARTITIONER")

    def __str__(self) -> str:
        return f"PARTITIONER {self.partitioner}"


Option = ErrorBound | Balance | Shed | Latency | PartitionedBy


def _share(where: str, what: str, value: object, example: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QueryError(where, f"{what} must be a number", repr(value), "0.1 is 10 percent.")
    if not 0 < value < 1:
        requirement = f"{what} must be between 0 and 100 percent"
        raise QueryError(where, requirement, _percent(value), f"Write for example {example}.")


def _percent(share: float) -> str:
    """Exactly: two shares are never one text, because the text says which query it is."""
    return f"{(Decimal(repr(float(share))) * 100).normalize():f} PERCENT"
