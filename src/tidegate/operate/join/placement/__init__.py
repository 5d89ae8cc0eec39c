"""Divides a join among instances: who stores a tuple, who sees it, and who finds its pairs."""
