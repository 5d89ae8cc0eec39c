"""A program for each engine of `peers.py`, run by the Python that has it; each needs that alone.

A program gets a job as JSON: the `case`, the folder `data` with its input, a folder `work`, and how
many `cores` to use. It writes its rows to `work`, with the columns of the case in their order, and
prints `RESULT` with the seconds from submitting the query to its end, its version and settings. In
the case of latency it prints the latter as `ABOUT` when it begins, and goes on until it is killed.
"""
