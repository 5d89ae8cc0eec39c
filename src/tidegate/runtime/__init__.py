"""How a plan runs: the loop of batches, the tasks, and the two places where tasks run."""
