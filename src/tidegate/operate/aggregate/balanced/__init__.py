"""Aggregates WITH BALANCE, which evaluate samples of groups in buckets that are too full."""
