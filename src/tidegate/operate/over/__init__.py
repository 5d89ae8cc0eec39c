"""Functions OVER the tuples of a key in the order of time."""
