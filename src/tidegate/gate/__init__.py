"""The deterministic merge: which tuples are late, which are ready, and how far readers may go."""
