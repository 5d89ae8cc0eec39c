"""Answers from samples: which tuples are looked at, and what can be said of those that are not."""
