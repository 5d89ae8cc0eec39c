"""Finds pairs of rows: by ranges, by keys, by predicates, and nearest in time."""
