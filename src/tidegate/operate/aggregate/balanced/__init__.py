"""Aggregates that trim groups to balance their buckets: what is counted, decided and answered."""
