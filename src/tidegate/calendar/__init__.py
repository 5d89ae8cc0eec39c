"""Times as the engine counts them: microseconds, durations, and local days and months."""
