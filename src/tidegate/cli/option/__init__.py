"""Reads what is given on the command line: values, queries, outputs and targets."""
