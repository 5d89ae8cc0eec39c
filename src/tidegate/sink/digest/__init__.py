"""A number for the row sequence of an output, and the loops that compute it."""
