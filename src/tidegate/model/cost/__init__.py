"""What a query's work costs, estimated from its batches."""
