"""Aggregates over windows of tuples."""
