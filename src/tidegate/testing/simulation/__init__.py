"""Runs the engine in a simulated world: threads, clock and disk all follow from one seed."""
