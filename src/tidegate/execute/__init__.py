"""The tasks of a batch and what runs them: here, or on Spark."""
