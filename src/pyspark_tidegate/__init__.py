"""Lets Spark find the data source `tidegate`: it looks for packages whose names begin so."""

from tidegate.execute.spark.data_source import TidegateSource as DefaultSource

__all__ = ["DefaultSource"]
