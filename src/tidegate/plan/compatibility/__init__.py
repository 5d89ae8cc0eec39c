"""What a checkpoint keeps of the query that made its state, and which later query may use it."""
