"""Serves the metrics of runs at /metrics: an observer of each run, two text formats, a server."""
