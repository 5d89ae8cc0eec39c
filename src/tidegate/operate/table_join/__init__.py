"""Joins tuples to the rows of a table that every task holds in memory."""
