"""Runs the first rows of a query to measure what it costs and the rate it sustains."""
