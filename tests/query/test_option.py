"""Options of a query: their texts and their limits."""

from __future__ import annotations

import pytest

from tidegate.errors import QueryError
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.latency import Latency
from tidegate.query.clause.shed import Shed


def test_options_say_themselves() -> None:
    assert str(ErrorBound(0.1)) == "ERROR 10 PERCENT CONFIDENCE 95 PERCENT"
    assert str(ErrorBound(0.1, 0.9, 70)) == "ERROR 10 PERCENT CONFIDENCE 90 PERCENT BUDGET 70 ROWS"
    assert str(ErrorBound(0.1, metric="rms")) == "ERROR 10 PERCENT CONFIDENCE 95 PERCENT BY RMS"
    assert str(Shed(0.985, "uniform")) == "SHED 98.5 PERCENT BY UNIFORM"
    assert str(Latency(2_000_000)) == "LATENCY 2 seconds"


@pytest.mark.parametrize("error", [0, 1, -0.1, 1.5, float("nan")])
def test_shares_are_between_nothing_and_all(error: float) -> None:
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        ErrorBound(error)
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        ErrorBound(0.1, confidence=error)
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        Shed(error)


def test_other_limits() -> None:
    with pytest.raises(QueryError, match="the budget must be at least 30 rows; got 0"):
        ErrorBound(0.1, budget_rows=0)
    with pytest.raises(QueryError, match="BY must be CONCEPT or UNIFORM; got luck"):
        Shed(0.5, "luck")
    with pytest.raises(QueryError, match="the target must be longer than zero; got 0 seconds"):
        Latency(0)
