"""The one room that knows PySpark: sessions, exchanges, streaming DataFrames."""
