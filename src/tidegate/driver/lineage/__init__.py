"""OpenLineage events of a run: its datasets, its progress and its end."""
