"""Evaluates expressions over columns, with the results and the failures of Spark SQL."""
