"""Deduplication by key within a time."""
