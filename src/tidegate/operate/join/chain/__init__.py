"""The stored tuples of a join, as chains of indexed runs in memory and in segments."""
