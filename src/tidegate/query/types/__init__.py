"""Types of expressions: what the SQL of Spark says of them, and which kernel computes each."""
