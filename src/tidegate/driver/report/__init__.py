"""Measures a running query and tells about it: status, summary, latency and load."""
