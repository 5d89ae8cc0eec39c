"""Aggregates over sessions: windows that last as long as the tuples of a group keep coming."""
