"""Aggregates in a plan: what is asked of one, how it is answered, and over which window."""
