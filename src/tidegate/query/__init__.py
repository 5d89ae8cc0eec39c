"""What a query says: streams, windows, expressions, aggregates, and the nodes they build."""
