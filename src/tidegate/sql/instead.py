"""Aggregates of other SQL that are not here: which they are, and what to write in their place."""

from __future__ import annotations

LISTS = (
    *("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET", "STRING_AGG", "LISTAGG", "GROUP_CONCAT"),
    *("MAP_AGG", "JSON_ARRAYAGG", "APPROX_PERCENTILE", "PERCENTILE_APPROX"),
)
"""Aggregates that sqlglot knows under one name each; here they keep their own."""

_OWN = 'Write one of your own in Python: tg.aggregate(MyAggregate(), "x").'
_LIST = f"An aggregate gives one plain value for each group. {_OWN}"
_QUANTILE = "Write QUANTILE(x, 0.5), which is exact and interpolates."

AGGREGATES = {
    **dict.fromkeys(LISTS, _LIST),
    **dict.fromkeys(("APPROX_PERCENTILE", "PERCENTILE_APPROX"), _QUANTILE),
    **dict.fromkeys(
        ("MODE", "SKEWNESS", "KURTOSIS", "HISTOGRAM_NUMERIC", "BIT_AND", "BIT_OR"), _OWN
    ),
    **dict.fromkeys(("BIT_XOR", "PRODUCT", "ENTROPY", "REGR_SLOPE", "REGR_INTERCEPT"), _OWN),
    **dict.fromkeys(
        ("LAG", "LEAD", "ROW_NUMBER", "RANK", "DENSE_RANK"), "OVER is not available yet."
    ),
}
"""By the name of an aggregate that is not there, what to do."""
