"""What a query says: streams, windows, expressions, aggregates, and the logical nodes they build."""
