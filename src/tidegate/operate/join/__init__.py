"""Joins of two streams: analysis of pairs, stored tuples, order of the output."""
