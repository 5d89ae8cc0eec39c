"""Finds the input tuples that a row of an output was made of, and shows that they make it."""
