"""Checkpoints of earlier versions: each is continued to the same rows, or refused clearly."""
