"""One program for each engine, run by the Python that has it; each needs that engine alone."""
