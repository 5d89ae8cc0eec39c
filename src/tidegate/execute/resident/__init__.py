"""Tasks that stay: workers that serve all batches of a query by messages."""
