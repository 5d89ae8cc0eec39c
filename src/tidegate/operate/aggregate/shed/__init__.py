"""Shedding in aggregates: which functions stand for what was dropped, and its figures."""
