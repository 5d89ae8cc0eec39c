"""Evaluates the predicate of a join: as a compiled program, or on candidate pairs."""
