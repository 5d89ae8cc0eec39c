"""Stateful operators over buckets, between the routed tuples and the ordered output."""
