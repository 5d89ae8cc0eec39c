"""Samples as states of aggregate functions, for answers within an error."""
