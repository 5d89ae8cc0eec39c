"""Aggregates of other SQL that are not here: which they are, and what to write in their place."""

from __future__ import annotations

from tidegate.errors import NO_WAY

QUANTILES = ("APPROX_PERCENTILE", "PERCENTILE_APPROX")
LISTS = (
    *("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET", "STRING_AGG", "LISTAGG", "GROUP_CONCAT"),
    *("MAP_AGG", "JSON_ARRAYAGG", *QUANTILES),
)
"""Aggregates that sqlglot knows under one name each; here they keep their own."""

_OWN = (
    *("MODE", "SKEWNESS", "KURTOSIS", "HISTOGRAM_NUMERIC", "BIT_AND", "BIT_OR", "BIT_XOR"),
    *("PRODUCT", "ENTROPY", "REGR_SLOPE", "REGR_INTERCEPT"),
)
_OVER = ("LAG", "LEAD", "ROW_NUMBER", "RANK", "DENSE_RANK")

AGGREGATES = {
    **dict.fromkeys((*LISTS, *_OVER), NO_WAY),
    **dict.fromkeys(QUANTILES, "Use QUANTILE, which is exact and interpolates."),
    **dict.fromkeys(
        _OWN, "There is no way yet in SQL; in Python there is tg.aggregate: see docs/python.md."
    ),
}
"""By the name of an aggregate that is not there, what to do."""
