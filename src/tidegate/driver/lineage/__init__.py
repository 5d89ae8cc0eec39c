"""OpenLineage events: which datasets a run reads and writes, and how it goes."""
