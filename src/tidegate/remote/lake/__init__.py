"""Finds tables of Delta Lake and Iceberg by their URIs, for sinks and sources alike."""
