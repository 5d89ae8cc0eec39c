"""The output order: what the instances made, merged into one sequence."""
