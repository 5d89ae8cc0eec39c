"""Functions OVER the rows of a partition, and filters by the rank in it."""
