"""Exact sums: the same bits for any order and division of the rows."""
