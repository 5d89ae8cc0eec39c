"""Types of expressions: Spark's typing rules, and the kernel that computes each expression."""
