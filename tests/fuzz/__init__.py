"""A differential fuzzer: random queries as Tidegate runs them and as DuckDB and Spark do.

A query is drawn as a tree and written down twice, once for each engine; nothing of Tidegate is used
but its public door, so that a mistake in its types, coercions or buckets cannot be on both sides.
"""
