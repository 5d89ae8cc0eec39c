"""Aggregates over windows of time: panes, functions, state, order of the output."""
