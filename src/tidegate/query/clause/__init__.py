"""The clauses that follow a query, `WITH ...`: a file each, and one table for SQL and Python."""
